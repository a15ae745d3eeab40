// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
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
		{"no bytes", serving(t, addrA), request(nil), decision.Deny, "shape"},
		{"trailing PEM data", serving(t, addrA), request(append(slices.Clone(good), good...)), decision.Deny, "shape"},
		{"two common names", renewal(t), request(twoNames(t)), decision.Deny, "shape"},
		{"a request that nobody read", serving(t, addrA), func(w *world) {
			w.request = &policy.Request{SignerName: pki.SignerKubeletServing, Phase: policy.Pending}
		}, decision.Deny, "shape"},
		{"Ed25519", renewal(t), request(ed25519Request(t)), decision.Deny, "key"},
		{"Ed25519, chosen", renewal(t), func(w *world) {
			w.object.Spec.Request, w.policy.AllowEd25519 = ed25519Request(t), true
		}, decision.Approve, ""},
		{"no organization", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = nil })), decision.Deny, "organization"},
		{"system:masters", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = []string{"system:masters"} })), decision.Deny, "organization"},
		{"system:masters, too", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = []string{"system:nodes", "system:masters"} })), decision.Deny, "organization"},
		{"system:nodes twice", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = []string{"system:nodes", "system:nodes"} })), decision.Deny, "organization"},
		{"no node's name", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "admin" })), decision.Deny, "common-name"},
		{"an empty node name", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "system:node:" })), decision.Deny, "common-name"},
		{"an upper case node name", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "system:node:A" })), decision.Deny, "common-name"},
		{"a node name with a slash", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "system:node:a/b" })), decision.Deny, "common-name"},
		{"client auth as a third usage", serving(t, addrA), usages("digital signature", "server auth", "client auth"), decision.Deny, "usages"},
		{"cert sign as a third usage", serving(t, addrA), usages("digital signature", "server auth", "cert sign"), decision.Deny, "usages"},
		{"one usage", serving(t, addrA), usages("server auth"), decision.Deny, "usages"},
		{"the other profile's usages", renewal(t), usages("digital signature", "server auth"), decision.Deny, "usages"},
		{"the same usage twice", serving(t, addrA), usages("digital signature", "server auth", "server auth"), decision.Deny, "usages"},
		{"nine minutes", serving(t, addrA), seconds(540), decision.Deny, "expiration"},
		{"ten minutes", serving(t, addrA), seconds(600), decision.Approve, ""},
		{"less than none", serving(t, addrA), seconds(-1), decision.Deny, "expiration"},
		{"the least there is", serving(t, addrA), seconds(math.MinInt32), decision.Deny, "expiration"},
		{"the most there is", serving(t, addrA), seconds(math.MaxInt32), decision.Deny, "expiration"},
		{"two years", serving(t, addrA), seconds(2 * 365 * 24 * 3600), decision.Deny, "expiration"},
		{"more than the operator chose", serving(t, addrA), func(w *world) { w.policy.MaxExpiration = time.Hour; seconds(3601)(w) }, decision.Deny, "expiration"},
		{"as much as the operator chose", serving(t, addrA), func(w *world) { w.policy.MaxExpiration = time.Hour; seconds(3600)(w) }, decision.Approve, ""},
		{"less than the operator chose", serving(t, addrA), func(w *world) { w.policy.MinExpiration = time.Hour; seconds(3599)(w) }, decision.Deny, "expiration"},
		{"as little as the operator chose", serving(t, addrA), func(w *world) { w.policy.MinExpiration = time.Hour; seconds(3600)(w) }, decision.Approve, ""},
		{"less than the API server's least, which no operator can lower", serving(t, addrA), func(w *world) { w.policy.MinExpiration = time.Minute; seconds(599)(w) }, decision.Deny, "expiration"},
		{"an organizational unit", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.OrganizationalUnit = []string{"ops"} })), decision.Deny, "shape"},
		{"a country", renewal(t), request(encode(func(r *pkitestTemplate) { r.Subject.Country = []string{"NZ"} })), decision.Deny, "shape"},
		{"names on a client certificate", renewal(t), request(pkitest.Kubelet(t, nodeA, nodeA)), decision.Deny, "name-count"},
		{"addresses on a client certificate", renewal(t), request(pkitest.Kubelet(t, nodeA, addrA)), decision.Deny, "name-count"},
		{"no names on a serving certificate", serving(t, addrA), request(pkitest.Kubelet(t, nodeA)), decision.Deny, "name-count"},
	})
}
