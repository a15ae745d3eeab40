// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

func TestGoodRequestsAreApproved(t *testing.T) {
	run(t, []namedCase{
		{"a node's serving certificate", serving(t, nodeA, addrA), nil, decision.Approve, ""},
		{"one with an address only", serving(t, addrA), nil, decision.Approve, ""},
		{"one with a name only", serving(t, nodeA), nil, decision.Approve, ""},
		{"a node's new client certificate", renewal(t), nil, decision.Approve, ""},
		{"a bootstrap token's client certificate", bootstrap(t), nil, decision.Approve, ""},
		{"with key encipherment, as RSA keys have", serving(t, addrA), func(w *world) {
			w.object.Spec.Usages = append(w.object.Spec.Usages, "key encipherment")
		}, decision.Approve, ""},
		{"approved by a person", bootstrap(t), (*world).approvedAlready, decision.Approve, ""},
	})
}

func TestEveryRuleIsCheckedOnApproval(t *testing.T) {
	d := serving(t, nodeA, addrA).decide()
	var ran []decision.RuleID
	for _, c := range d.Checks {
		ran = append(ran, c.Rule)
	}
	if !slices.Equal(ran, policy.RuleIDs()) {
		t.Errorf("ran %q\nof  %q", ran, policy.RuleIDs())
	}
}

func TestScope(t *testing.T) {
	condition := func(kind certificatesv1.RequestConditionType) func(*world) {
		return func(w *world) {
			w.object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: kind}}
		}
	}
	run(t, []namedCase{
		{"another signer", serving(t, addrA), func(w *world) { w.object.Spec.SignerName = "example.com/mine" }, decision.Ignore, "signer"},
		{"kube-apiserver-client", renewal(t), func(w *world) { w.object.Spec.SignerName = "kubernetes.io/kube-apiserver-client" }, decision.Ignore, "signer"},
		{"denied", serving(t, addrA), condition(certificatesv1.CertificateDenied), decision.Ignore, "undecided"},
		{"failed", serving(t, addrA), condition(certificatesv1.CertificateFailed), decision.Ignore, "undecided"},
		{"issued", serving(t, addrA), func(w *world) { w.approvedAlready(); w.object.Status.Certificate = []byte("x") }, decision.Ignore, "undecided"},
		{"a phase that does not exist", serving(t, addrA), func(w *world) {
			r := policy.Read(&w.object, w.policy)
			r.Phase = "Tuesday"
			w.request = &r
		}, decision.Ignore, "undecided"},
	})
}
