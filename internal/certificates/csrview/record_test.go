// SPDX-License-Identifier: Apache-2.0

package csrview_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/platform/decision"
)

func TestADecisionIsWrittenDown(t *testing.T) {
	d := decision.Decision{Verdict: decision.Deny, Rule: "names", Checks: []decision.Check{
		{Rule: "signer", Outcome: decision.Pass, Detail: "which the request says anyway"},
		{Rule: "machine", Outcome: decision.Pass, Detail: "node a is machine i-1: known", Evidence: true},
		{Rule: "silent", Outcome: decision.Pass, Evidence: true},
		{Rule: "other", Outcome: decision.NotApplicable, Detail: "not about this"},
		{Rule: "later", Outcome: decision.Waiting, Detail: "not yet", Hint: "wait"},
		{Rule: "names", Outcome: decision.Refuse, Detail: strings.Repeat("ä", 50), Hint: "ask for <a> & \"b\""},
	}}
	text := csrview.Encode(d, 21)
	const want = `{"verdict":"Deny","rule":"names","checks":["signer","machine: node a is machine i-1…","silent",` +
		`{"rule":"later","outcome":"Wait","detail":"not yet","hint":"wait"},` +
		`{"rule":"names","outcome":"Refuse","detail":"ääääääääää…","hint":"ask for <a> & \"b\""}]}`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	got, ok := csrview.Decode(text)
	if !ok {
		t.Fatalf("cannot be read back: %s", text)
	}
	back := decision.Decision{Verdict: decision.Deny, Rule: "names", Checks: []decision.Check{
		{Rule: "signer", Outcome: decision.Pass},
		{Rule: "machine", Outcome: decision.Pass, Detail: "node a is machine i-1…", Evidence: true},
		{Rule: "silent", Outcome: decision.Pass},
		{Rule: "later", Outcome: decision.Waiting, Detail: "not yet", Hint: "wait"},
		{Rule: "names", Outcome: decision.Refuse, Detail: "ääääääääää…", Hint: `ask for <a> & "b"`},
	}}
	if diff := cmp.Diff(back, got); diff != "" {
		t.Error(diff)
	}
}

// The decision, and its machine, are read back as they were, whatever the machine is called.
func FuzzDecided(f *testing.F) {
	f.Add("static|i-1", "node a is machine i-1 (static)")
	f.Add(`","checks":[],"machine":"static|other`, "\x00\u2028<>&")
	f.Fuzz(func(t *testing.T, machine, detail string) {
		machine, detail = strings.ToValidUTF8(machine, "?"), strings.ToValidUTF8(detail, "?")
		d := decision.Decision{Verdict: decision.Approve, Checks: []decision.Check{{Rule: "machine", Outcome: decision.Pass, Detail: detail, Evidence: detail != ""}}}
		csr := &certificatesv1.CertificateSigningRequest{}
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{csrview.Condition(d, machine, 10_000)}
		if len(detail) > 10_000 {
			return
		}
		got, of, ok := csrview.Decided(csr)
		if diff := cmp.Diff(d, got); !ok || of != machine || diff != "" {
			t.Errorf("machine %q is %q, %v\n%s", machine, of, ok, diff)
		}
		if about, verdict := csrview.DecidedAbout(csr); about != machine || verdict != decision.Approve {
			t.Errorf("machine %q is %q, %s", machine, about, verdict)
		}
	})
}

func TestDecisionsThatWereWrittenOtherwise(t *testing.T) {
	long := `{"verdict":"Approve","checks":[{"rule":"key","outcome":"Pass","detail":"ECDSA 256"}]}`
	if d, ok := csrview.Decode(long); !ok || len(d.Checks) != 1 || d.Checks[0] != (decision.Check{Rule: "key", Outcome: decision.Pass, Detail: "ECDSA 256"}) {
		t.Errorf("%+v, %v", d, ok)
	}
	for _, text := range []string{"", "{}", "yes", `{"verdict":"","checks":[]}`, `{"verdict":"Deny","checks":[7]}`, `{"verdict":"Deny","checks":["a"]`} {
		if d, ok := csrview.Decode(text); ok {
			t.Errorf("%q was read as %+v", text, d)
		}
	}
}

// Whatever stands in a text, its record is JSON, and is read back as it was: but for bytes that are not text.
func TestAnyTextIsWrittenDown(t *testing.T) {
	for _, text := range []string{"plain", `a "b" \c`, "<a> & b", "\x00\x1f\n\t\x7f", "ä€\u2028", "\xff", "", "'"} {
		want := []decision.Check{{Rule: "machine", Outcome: decision.Pass, Detail: strings.ToValidUTF8(text, "\ufffd"), Evidence: text != ""}}
		d := decision.Decision{Verdict: decision.Approve, Checks: []decision.Check{{Rule: "machine", Outcome: decision.Pass, Detail: text, Evidence: true}}}
		written := csrview.Encode(d, 100)
		got, ok := csrview.Decode(written)
		if diff := cmp.Diff(want, got.Checks); !ok || diff != "" {
			t.Errorf("%q is written as %s and read as\n%s", text, written, diff)
		}
	}
	const none = `{"verdict":"Wait","rule":"machine","checks":[]}`
	if got := csrview.Encode(decision.Decision{Verdict: decision.Wait, Rule: "machine"}, 9); got != none {
		t.Errorf("without checks it is %s", got)
	}
}

// A decision is summed up in the same words before it is written down and after.
func TestTheSameSummaryOfWhatWasWrittenDown(t *testing.T) {
	d := decision.Decision{Verdict: decision.Approve, Checks: []decision.Check{
		{Rule: "signer", Outcome: decision.Pass, Detail: "ours"},
		{Rule: "manual-approval", Outcome: decision.NotApplicable, Detail: "it is not for people"},
		{Rule: "machine", Outcome: decision.Pass, Detail: "a is i-1", Evidence: true},
	}}
	if back, ok := csrview.Decode(csrview.Encode(d, 400)); !ok || back.Summary() != d.Summary() {
		t.Errorf("%q was written down, and is %q", d.Summary(), back.Summary())
	}
}
