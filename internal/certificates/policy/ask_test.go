// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

func TestAsk(t *testing.T) {
	nodeAccess := func(sub string) *policy.Access {
		return &policy.Access{
			Username: "system:node:" + nodeA, UID: "u", Groups: []string{"system:nodes", "system:authenticated"},
			Extra: map[string][]string{"k": {"v"}}, Subresource: sub,
		}
	}
	tokenAccess := nodeAccess("nodeclient")
	tokenAccess.Username = "system:bootstrap:abcdef"
	tokenAccess.Groups = []string{"system:bootstrappers", "system:bootstrappers:muster:" + machineA, "system:authenticated"}
	for _, tc := range []struct {
		name    string
		world   *world
		change  func(*world)
		want    policy.Question
		message string
	}{
		{
			"serving", serving(t, nodeA, addrA), nil,
			policy.Question{Node: nodeA, Names: []string{nodeA, addrA}, Access: nodeAccess("selfnodeserver")},
			"Auto approving self kubelet server certificate after SubjectAccessReview.",
		},
		{
			"renewal", renewal(t), nil,
			policy.Question{Node: nodeA, Access: nodeAccess("selfnodeclient")},
			"Auto approving self kubelet client certificate after SubjectAccessReview.",
		},
		{
			"bootstrap", bootstrap(t), nil,
			policy.Question{Node: nodeA, Machine: machineA, Asker: machineA, Token: "system:bootstrap:abcdef", Access: tokenAccess},
			"Auto approving kubelet client certificate after SubjectAccessReview.",
		},
		{
			"approved already: no review", renewal(t), (*world).approvedAlready,
			policy.Question{Node: nodeA},
			"Auto approving self kubelet client certificate after SubjectAccessReview.",
		},
		{
			"the session of an instance", renewal(t), func(w *world) {
				w.object.Spec.Extra = map[string]certificatesv1.ExtraValue{"k": {"v"}, "sessionName": {machineB}}
			},
			func() policy.Question {
				q := policy.Question{Node: nodeA, Asker: machineB, Access: nodeAccess("selfnodeclient")}
				q.Access.Extra = map[string][]string{"k": {"v"}, "sessionName": {machineB}}
				return q
			}(), "",
		},
		{"unreadable: nothing", renewal(t), func(w *world) { w.object.Spec.Request = nil }, policy.Question{}, ""},
		{"decided: nothing", renewal(t), func(w *world) {
			w.object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
		}, policy.Question{}, ""},
		{"another signer: nothing", renewal(t), func(w *world) { w.object.Spec.SignerName = "a/b" }, policy.Question{}, ""},
		{"a person: no review", renewal(t), func(w *world) { w.object.Spec.Username = "alice" }, policy.Question{Node: nodeA}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.world.object.Spec.UID = "u"
			tc.world.object.Spec.Extra = map[string]certificatesv1.ExtraValue{"k": {"v"}}
			if tc.change != nil {
				tc.change(tc.world)
			}
			r := policy.Read(&tc.world.object, tc.world.policy)
			if r.Phase == policy.Pending || r.Phase == policy.Approved {
				tc.want.Key = r.CSR.Fingerprint()
			}
			if diff := cmp.Diff(tc.want, policy.Ask(tc.world.policy, r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := policy.ApprovalMessage(r); tc.message != "" && got != tc.message {
				t.Errorf("message %q", got)
			}
		})
	}
}

func TestReadDoesNotParseWhatIsNotServed(t *testing.T) {
	w := renewal(t)
	w.object.Spec.SignerName = "example.com/large"
	w.object.Spec.Request = []byte("not ours")
	if r := policy.Read(&w.object, w.policy); r.ParseError != nil {
		t.Errorf("read it: %v", r.ParseError)
	}
	w.object.Spec.SignerName = pki.SignerKubeletClient
	if r := policy.Read(&w.object, w.policy); r.ParseError == nil {
		t.Error("did not read it")
	}
}
