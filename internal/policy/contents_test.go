// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/pki/pkitest"
	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/trace"
)

func TestContents(t *testing.T) {
	encode := func(change func(*pkitestTemplate)) []byte {
		tpl := pkitest.Template(nodeA, addrA)
		change(tpl)
		return pkitest.Encode(t, pkitest.Key(t), tpl)
	}
	request := func(pem []byte) func(*world) { return func(w *world) { w.object.Spec.Request = pem } }
	usages := func(u ...certificatesv1.KeyUsage) func(*world) { return func(w *world) { w.object.Spec.Usages = u } }
	seconds := func(s int32) func(*world) { return func(w *world) { w.object.Spec.ExpirationSeconds = &s } }
	good := pkitest.Kubelet(t, nodeA, addrA)
	run(t, []namedCase{
		{"no bytes", serving(t, addrA), request(nil), trace.Deny, "shape"},
		{"trailing PEM data", serving(t, addrA), request(append(slices.Clone(good), good...)), trace.Deny, "shape"},
		{"two common names", renewal(t), request(twoNames(t)), trace.Deny, "shape"},
		{"a request that nobody read", serving(t, addrA), func(w *world) {
			w.request = &policy.Request{SignerName: pki.SignerKubeletServing, Phase: policy.Pending}
		}, trace.Deny, "shape"},
		{"Ed25519", renewal(t), request(ed25519Request(t)), trace.Deny, "key"},
		{"Ed25519, chosen", renewal(t), func(w *world) {
			w.object.Spec.Request, w.policy.AllowEd25519 = ed25519Request(t), true
		}, trace.Approve, ""},
		{"no organization", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = nil })), trace.Deny, "organization"},
		{"system:masters", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = []string{"system:masters"} })), trace.Deny, "organization"},
		{"system:masters, too", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = []string{"system:nodes", "system:masters"} })), trace.Deny, "organization"},
		{"system:nodes twice", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = []string{"system:nodes", "system:nodes"} })), trace.Deny, "organization"},
		{"no node's name", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "admin" })), trace.Deny, "common-name"},
		{"an empty node name", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "system:node:" })), trace.Deny, "common-name"},
		{"an upper case node name", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "system:node:A" })), trace.Deny, "common-name"},
		{"a node name with a slash", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "system:node:a/b" })), trace.Deny, "common-name"},
		{"client auth as a third usage", serving(t, addrA), usages("digital signature", "server auth", "client auth"), trace.Deny, "usages"},
		{"cert sign as a third usage", serving(t, addrA), usages("digital signature", "server auth", "cert sign"), trace.Deny, "usages"},
		{"one usage", serving(t, addrA), usages("server auth"), trace.Deny, "usages"},
		{"the other profile's usages", renewal(t), usages("digital signature", "server auth"), trace.Deny, "usages"},
		{"the same usage twice", serving(t, addrA), usages("digital signature", "server auth", "server auth"), trace.Deny, "usages"},
		{"nine minutes", serving(t, addrA), seconds(540), trace.Deny, "expiration"},
		{"ten minutes", serving(t, addrA), seconds(600), trace.Approve, ""},
		{"less than none", serving(t, addrA), seconds(-1), trace.Deny, "expiration"},
		{"the least there is", serving(t, addrA), seconds(math.MinInt32), trace.Deny, "expiration"},
		{"the most there is", serving(t, addrA), seconds(math.MaxInt32), trace.Deny, "expiration"},
		{"two years", serving(t, addrA), seconds(2 * 365 * 24 * 3600), trace.Deny, "expiration"},
		{"more than the operator chose", serving(t, addrA), func(w *world) { w.policy.MaxExpiration = time.Hour; seconds(3601)(w) }, trace.Deny, "expiration"},
		{"as much as the operator chose", serving(t, addrA), func(w *world) { w.policy.MaxExpiration = time.Hour; seconds(3600)(w) }, trace.Approve, ""},
		{"less than the operator chose", serving(t, addrA), func(w *world) { w.policy.MinExpiration = time.Hour; seconds(3599)(w) }, trace.Deny, "expiration"},
		{"as little as the operator chose", serving(t, addrA), func(w *world) { w.policy.MinExpiration = time.Hour; seconds(3600)(w) }, trace.Approve, ""},
		{"less than the API server's least, which no operator can lower", serving(t, addrA), func(w *world) { w.policy.MinExpiration = time.Minute; seconds(599)(w) }, trace.Deny, "expiration"},
		{"an organizational unit", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.OrganizationalUnit = []string{"ops"} })), trace.Deny, "shape"},
		{"a country", renewal(t), request(encode(func(r *pkitestTemplate) { r.Subject.Country = []string{"NZ"} })), trace.Deny, "shape"},
		{"names on a client certificate", renewal(t), request(pkitest.Kubelet(t, nodeA, nodeA)), trace.Deny, "name-count"},
		{"addresses on a client certificate", renewal(t), request(pkitest.Kubelet(t, nodeA, addrA)), trace.Deny, "name-count"},
		{"no names on a serving certificate", serving(t, addrA), request(pkitest.Kubelet(t, nodeA)), trace.Deny, "name-count"},
	})
}
