// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/review"
	"muster.dev/muster/internal/trace"
)

// wrote is what the API server notes when somebody writes an annotation.
func wrote(subresource, annotation string) []metav1.ManagedFieldsEntry {
	fields := metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:annotations":{".":{},"f:%s":{}}}}`, annotation))
	return []metav1.ManagedFieldsEntry{{Manager: "x", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, FieldsV1: fields}}
}

func TestMachineOf(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields []metav1.ManagedFieldsEntry
		groups []string
		want   string
	}{
		{"nobody noted who wrote it", nil, nil, ""},
		{"an approver wrote it", wrote("approval", review.MachineAnnotation), nil, "m"},
		{"a signer wrote it", wrote("status", review.MachineAnnotation), nil, "m"},
		{"whoever created it", wrote("", review.MachineAnnotation), nil, ""},
		{"both did", append(wrote("approval", review.MachineAnnotation), wrote("", review.MachineAnnotation)...), nil, ""},
		{"an approver wrote another one", wrote("approval", review.Annotation), nil, ""},
		{"the token says it", nil, []string{"system:bootstrappers", "system:bootstrappers:muster:i-1"}, "i-1"},
		{"the token says two", nil, []string{"system:bootstrappers:muster:i-1", "system:bootstrappers:muster:i-2"}, ""},
		{"the token names a node", nil, []string{"system:bootstrappers:muster:name:a"}, ""},
	} {
		csr := &certificatesv1.CertificateSigningRequest{}
		csr.Annotations, csr.ManagedFields, csr.Spec.Groups = map[string]string{review.MachineAnnotation: "m"}, tc.fields, tc.groups
		if got := MachineOf(csr); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// recorded is the decision in an annotation.
func recorded(t *testing.T, annotations map[string]string) trace.Decision {
	t.Helper()
	d, ok := review.Decode(annotations[review.Annotation])
	if !ok {
		t.Fatalf("no decision in %q", annotations[review.Annotation])
	}
	return d
}

func TestTheDecisionStandsInTheRequest(t *testing.T) {
	w := newWorld(t, func(w *world) { w.machine(12) })
	// A node may plant what it likes when it creates a request.
	planted := map[string]string{review.Annotation: `{"verdict":"Approve"}`, review.MachineAnnotation: "another", "example.com/keep": "this"}
	good, bad, failed, waiting := serving(t, "good", 11, address(11)), serving(t, "bad", 11, address(12)), approved(serving(t, "failed", 12, address(11))), bootstrap(t, "waiting", 13)
	for _, csr := range []*certificatesv1.CertificateSigningRequest{good, bad, failed} {
		csr.Annotations = planted
	}
	w.create(good, bad, failed, waiting)
	w.becomes("good", issued)
	w.becomes("bad", "Denied/address-assigned")
	w.becomes("failed", "Approved/KubectlApprove Failed/SignerValidationFailure")
	for name, want := range map[string]trace.Verdict{"good": trace.Approve, "bad": trace.Deny, "failed": trace.Deny} {
		annotations := w.get(name).Annotations
		if d := recorded(t, annotations); d.Verdict != want || len(d.Checks) < 10 {
			t.Errorf("%s: %+v", name, d)
		}
		if n := map[string]int{"good": 11, "bad": 11, "failed": 12}[name]; annotations[review.MachineAnnotation] != "fake|"+machineID(n) || annotations["example.com/keep"] != "this" {
			t.Errorf("%s: annotations %q", name, annotations)
		}
	}
	w.until("waiting is told", func() bool { return w.events.annotations("waiting") != nil })
	if d := recorded(t, w.events.annotations("waiting")); d.Verdict != trace.Wait || d.Rule == "" {
		t.Errorf("waiting: %+v", d)
	}
	if d := recorded(t, w.events.annotations("bad")); d.Rule != "address-assigned" {
		t.Errorf("bad: %+v", d)
	}
	if n := w.updates("approval") + w.updates("status"); n != 4 {
		t.Errorf("%d writes: the decision must go with the verdict", n)
	}
}

// What was written down with the approval tells more than what is decided about an approved request.
func TestAnApprovalsRecordIsKept(t *testing.T) {
	w := newWorld(t, func(w *world) {
		csr := approved(serving(t, "ours", 11, address(11)))
		csr.Annotations = map[string]string{review.Annotation: `{"verdict":"Approve","checks":[]}`}
		csr.ManagedFields = wrote("approval", review.Annotation)
		planted := csr.DeepCopy()
		planted.Name, planted.ManagedFields = "planted", nil
		w.create(csr, planted)
	})
	w.becomes("ours", "Approved/KubectlApprove Issued")
	w.becomes("planted", "Approved/KubectlApprove Issued")
	if d := recorded(t, w.get("ours").Annotations); len(d.Checks) != 0 {
		t.Errorf("ours: %+v", d)
	}
	if d := recorded(t, w.get("planted").Annotations); len(d.Checks) == 0 {
		t.Errorf("planted: %+v", d)
	}
}

func TestCompactIsShort(t *testing.T) {
	d := trace.Decision{Verdict: trace.Deny, Rule: "a", Checks: []trace.Check{
		{Rule: "a", Outcome: trace.Refuse, Detail: strings.Repeat("name, ", 5000), Hint: "<&>"},
		{Rule: "b", Outcome: trace.NotApplicable, Detail: "not about this"},
	}}
	got := compact(d)
	if len(got) > 600 || !strings.Contains(got, `"hint":"<&>"`) || strings.Contains(got, "NotApplicable") || strings.HasSuffix(got, "\n") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
