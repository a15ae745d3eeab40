// SPDX-License-Identifier: Apache-2.0

package csrview_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/platform/decision"
)

var (
	approval = decision.Decision{Verdict: decision.Approve, Checks: []decision.Check{{Rule: "signer", Outcome: decision.Pass, Detail: "ours"}}}
	denial   = decision.Decision{Verdict: decision.Deny, Rule: "name-assigned", Checks: []decision.Check{
		{Rule: "name-assigned", Outcome: decision.Refuse, Detail: "the name a is b's", Hint: "ask for c"},
	}}
	waiting = decision.Decision{Verdict: decision.Wait, Rule: "machine", Checks: []decision.Check{{Rule: "machine", Outcome: decision.Waiting, Detail: "no machine is node a"}}}
)

func text(t *testing.T, d decision.Decision) string {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func condition(kind certificatesv1.RequestConditionType, reason, message string) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: "True", Reason: reason, Message: message}
}

func TestWhoIsBelieved(t *testing.T) {
	approved := condition(certificatesv1.CertificateApproved, "AutoApproved", "after review")
	denied := condition(certificatesv1.CertificateDenied, "name-assigned", "it is b's")
	told := func(uid, message string, at int64, d *decision.Decision) corev1.Event {
		e := corev1.Event{Message: message, LastTimestamp: metav1.Unix(at, 0)}
		e.InvolvedObject = corev1.ObjectReference{Kind: "CertificateSigningRequest", Name: "csr-1", UID: "u"}
		if uid != "" {
			e.InvolvedObject.UID = "other"
		}
		if d != nil {
			e.Annotations = map[string]string{csrview.Annotation: text(t, *d)}
		}
		return e
	}
	type want struct {
		Verdict decision.Verdict
		Why     string
		Source  string
		State   csrview.State
	}
	wrote := func(d decision.Decision) certificatesv1.CertificateSigningRequestCondition {
		return csrview.Condition(d, "static|a", 400)
	}
	var none []certificatesv1.CertificateSigningRequestCondition
	for _, tc := range []struct {
		name       string
		conditions []certificatesv1.CertificateSigningRequestCondition
		events     []corev1.Event
		want       want
	}{
		{
			"the record of an approval", append(none, approved, wrote(approval)), nil,
			want{decision.Approve, approval.Summary(), csrview.FromRecord, csrview.Approved},
		},
		{
			"the record of a denial", append(none, denied, wrote(denial)), nil,
			want{decision.Deny, "the name a is b's; ask for c", csrview.FromRecord, csrview.Denied},
		},
		{
			"two records are none", append(none, approved, wrote(approval), wrote(denial)), nil,
			want{decision.Approve, "AutoApproved: after review", csrview.FromCondition, csrview.Approved},
		},
		{
			"nor is one in an annotation, which anybody may write", append(none, approved), nil,
			want{decision.Approve, "AutoApproved: after review", csrview.FromCondition, csrview.Approved},
		},
		{
			"a person denied what the controller would approve", append(none, condition(certificatesv1.CertificateDenied, "", "sold"), wrote(approval)), nil,
			want{decision.Deny, "sold", csrview.FromCondition, csrview.Denied},
		},
		{
			"approved by a person, failed by the controller", append(none, approved, condition(certificatesv1.CertificateFailed, "SignerValidationFailure", "x"), wrote(denial)), nil,
			want{decision.Deny, "the name a is b's; ask for c", csrview.FromRecord, csrview.Failed},
		},
		{
			"the newest event of one that waits", nil,
			[]corev1.Event{told("", "new", 20, &waiting), told("", "old", 10, &denial), told("another", "of another object of the name", 30, &approval)},
			want{decision.Wait, "no machine is node a", csrview.FromEvent, csrview.Pending},
		},
		{
			"an event without a decision", nil,
			[]corev1.Event{told("", "in words", 1, nil)},
			want{"", "in words", csrview.FromEvent, csrview.Pending},
		},
		{
			"a record that is no decision", append(none, condition(csrview.DecidedCondition, "Approve", "{}")), nil,
			want{"", "", "", csrview.Pending},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1", UID: "u"}}
			csr.Annotations = map[string]string{csrview.Annotation: text(t, approval)}
			csr.Status.Conditions = tc.conditions
			r := csrview.Of(csr, tc.events)
			if diff := cmp.Diff(tc.want, want{r.Verdict, r.Why, r.Source, r.State}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (r.Decision != nil) != (r.Verdict != "" && r.Source != csrview.FromCondition) {
				t.Errorf("verdict %q with decision %v", r.Verdict, r.Decision)
			}
		})
	}
}

func TestWhatIsAsked(t *testing.T) {
	csr := &certificatesv1.CertificateSigningRequest{}
	csr.Spec.Request = pkitest.Kubelet(t, "node-1", "node-1", "10.0.0.1")
	csr.Spec.Usages = []certificatesv1.KeyUsage{"server auth"}
	got := csrview.Of(csr, nil).Asked
	want := csrview.Asked{
		CommonName: "system:node:node-1", Organization: []string{"system:nodes"}, DNSNames: []string{"node-1"},
		Addresses: []string{"10.0.0.1"}, Key: "ECDSA 256", Usages: []string{"server auth"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	csr.Spec.Request = []byte("nonsense")
	if r := csrview.Of(csr, nil); r.Asked.Unreadable == "" {
		t.Error("nonsense could be read")
	}
	csr.Status.Certificate = []byte("nonsense")
	if r := csrview.Of(csr, nil); r.State != csrview.Issued || r.Certificate != nil {
		t.Errorf("state %s, certificate %v", r.State, r.Certificate)
	}
	csr.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
	if r := csrview.Of(csr, nil); r.Created.Location() != time.UTC {
		t.Error("times are not in UTC")
	}
}
