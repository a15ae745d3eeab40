// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/platform/decision"
)

// decidedFor is the condition that is written with a decision about a machine.
func decidedFor(v decision.Verdict, machine string) certificatesv1.CertificateSigningRequestCondition {
	return csrview.Condition(decision.Decision{Verdict: v}, machine, 100)
}

func TestMachineOf(t *testing.T) {
	untrue := decidedFor(decision.Approve, "static|m")
	untrue.Status = "False"
	garbled := decidedFor(decision.Approve, "static|m")
	garbled.Message = garbled.Message[1:]
	type conditions = []certificatesv1.CertificateSigningRequestCondition
	for _, tc := range []struct {
		name       string
		conditions conditions
		groups     []string
		want       string
	}{
		{"nobody decided", nil, nil, ""},
		{"somebody else approved", conditions{{Type: certificatesv1.CertificateApproved, Status: "True", Message: `{"verdict":"Approve","machine":"static|m"}`}}, nil, ""},
		{"it was approved or signed", conditions{{Type: certificatesv1.CertificateApproved, Status: "True"}, decidedFor(decision.Approve, "static|m")}, nil, "static|m"},
		{"it was, for a machine with any name", conditions{decidedFor(decision.Approve, "static|m \"\\\n")}, nil, "static|m \"\\\n"},
		{"it was, by a token for a machine", conditions{decidedFor(decision.Approve, "static|m")}, []string{"system:bootstrappers:muster:m"}, "static|m"},
		{"it was refused, and a person thought otherwise", conditions{decidedFor(decision.Deny, "static|m")}, nil, ""},
		{"there are two", conditions{decidedFor(decision.Approve, "static|m"), decidedFor(decision.Approve, "static|n")}, nil, ""},
		{"it does not hold", conditions{untrue}, nil, ""},
		{"it cannot be read", conditions{garbled}, nil, ""},
		{"the token says it", nil, []string{"system:bootstrappers", "system:bootstrappers:muster:i-1"}, "i-1"},
		{"the token says two", nil, []string{"system:bootstrappers:muster:i-1", "system:bootstrappers:muster:i-2"}, ""},
		{"the token names a node", nil, []string{"system:bootstrappers:muster:name:a"}, ""},
	} {
		csr := &certificatesv1.CertificateSigningRequest{}
		csr.Annotations = map[string]string{"certificates.muster.dev/machine": "mine"} // as anybody may
		csr.Status.Conditions, csr.Spec.Groups = tc.conditions, tc.groups
		if got := MachineOf(csr); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// decided is the decision that stands in a request, and the machine.
func (w *world) decided(name string) (d decision.Decision, machine string) {
	w.t.Helper()
	d, machine, ok := csrview.Decided(w.get(name))
	if !ok {
		w.t.Fatalf("no decision in %+v", w.get(name).Status.Conditions)
	}
	return d, machine
}

// recorded is the decision in the annotation of an Event.
func recorded(t *testing.T, annotations map[string]string) decision.Decision {
	t.Helper()
	d, ok := csrview.Decode(annotations[csrview.Annotation])
	if !ok {
		t.Fatalf("no decision in %q", annotations[csrview.Annotation])
	}
	return d
}

func TestTheDecisionStandsInTheRequest(t *testing.T) {
	w := newWorld(t, func(w *world) { w.machine(12) })
	w.create(serving(t, "good", 11, address(11)), serving(t, "bad", 11, address(12)), approved(serving(t, "failed", 12, address(11))), bootstrap(t, "waiting", 13))
	w.becomes("good", wasIssued)
	w.becomes("bad", "Denied/address-assigned")
	w.becomes("failed", "Approved/KubectlApprove Failed/SignerValidationFailure")
	for name, want := range map[string]decision.Verdict{"good": decision.Approve, "bad": decision.Deny, "failed": decision.Deny} {
		d, machine := w.decided(name)
		if d.Verdict != want || len(d.Checks) < 10 {
			t.Errorf("%s: %+v", name, d)
		}
		if n := map[string]int{"good": 11, "bad": 11, "failed": 12}[name]; machine != "fake|"+machineID(n) {
			t.Errorf("%s: machine %q", name, machine)
		}
		conditions := w.get(name).Status.Conditions
		if last := conditions[len(conditions)-1]; last.Type != csrview.DecidedCondition || last.Reason != string(want) || last.Status != "True" {
			t.Errorf("%s: the last condition is %+v", name, last)
		}
	}
	w.until("waiting is told", func() bool { return w.events.annotations("waiting") != nil })
	if d := recorded(t, w.events.annotations("waiting")); d.Verdict != decision.Wait || d.Rule == "" {
		t.Errorf("waiting: %+v", d)
	}
	if d := recorded(t, w.events.annotations("bad")); d.Rule != "address-assigned" {
		t.Errorf("bad: %+v", d)
	}
	if n := w.updates("approval") + w.updates("status"); n != 4 {
		t.Errorf("%d writes: the decision must go with the verdict", n)
	}
}

// The record of the approval says more than the decision about an approved request.
func TestAnApprovalsRecordIsKept(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Keep = -1
		ours, theirs, moved := approved(serving(t, "ours", 11, address(11))), approved(serving(t, "theirs", 11, address(11))), approved(serving(t, "moved", 11, address(11)))
		ours.Status.Conditions = append(ours.Status.Conditions, decidedFor(decision.Approve, "fake|"+machineID(11)))
		moved.Status.Conditions = append(moved.Status.Conditions, decidedFor(decision.Approve, "fake|"+machineID(12)))
		theirs.Annotations = map[string]string{csrview.Annotation: `{"verdict":"Approve","checks":[]}`}
		w.create(ours, theirs, moved)
	})
	for name, whole := range map[string]bool{"ours": false, "theirs": true, "moved": false} {
		w.becomes(name, "Approved/KubectlApprove Issued")
		d, machine := w.decided(name)
		if len(d.Checks) > 0 != whole {
			t.Errorf("%s: %+v", name, d)
		}
		// The record has the machine that the certificate went to, not the one at the time of the approval.
		if machine != "fake|"+machineID(11) {
			t.Errorf("%s: machine %q", name, machine)
		}
	}
}

// The watch shows a certificate before the answer to its write comes. The record is the same either way.
func TestTheWatchIsQuickerThanTheAnswer(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Policy.Bootstrap.UnboundTokens = true
		w.client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
			update, _ := a.(clienttesting.UpdateAction)
			csr, _ := update.GetObject().DeepCopyObject().(*certificatesv1.CertificateSigningRequest)
			if a.GetSubresource() != "status" {
				return false, nil, nil
			}
			out, err := w.store.update(csr, "status")
			w.until("the watch has shown it", func() bool { return len(w.register.List()) == 1 })
			return true, out, err
		})
	})
	// Of such a request the API server notes nothing, and the token tells of no machine.
	w.create(object("node-csr-x", pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(11)), "system:bootstrap:abcdef", "system:bootstrappers"))
	w.becomes("node-csr-x", wasIssued)
	w.until("the answer came", func() bool { return w.register.added().UID != "" })
	if diff := cmp.Diff(w.register.added(), w.register.List()[0]); diff != "" {
		t.Errorf("(-the answer +the watch)\n%s", diff)
	}
	if m := w.register.List()[0].Machine; m != "fake|"+machineID(11) {
		t.Errorf("on record for machine %q", m)
	}
}

func TestCompactIsShort(t *testing.T) {
	d := decision.Decision{Verdict: decision.Deny, Rule: "a", Checks: []decision.Check{
		{Rule: "a", Outcome: decision.Refuse, Detail: strings.Repeat("name, ", 5000), Hint: "<&>"},
		{Rule: "b", Outcome: decision.NotApplicable, Detail: "not about this"},
	}}
	got := compact(d)
	if len(got) > 600 || !strings.Contains(got, `"hint":"<&>"`) || strings.Contains(got, "NotApplicable") || strings.HasSuffix(got, "\n") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
