// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/review"
	"muster.dev/muster/internal/trace"
)

func TestADecisionIsWrittenDown(t *testing.T) {
	d := trace.Decision{Verdict: trace.Deny, Rule: "names", Checks: []trace.Check{
		{Rule: "signer", Outcome: trace.Pass, Detail: "which the request says anyway"},
		{Rule: "machine", Outcome: trace.Pass, Detail: "node a is machine i-1: known", Evidence: true},
		{Rule: "silent", Outcome: trace.Pass, Evidence: true},
		{Rule: "other", Outcome: trace.NotApplicable, Detail: "not about this"},
		{Rule: "later", Outcome: trace.Waiting, Detail: "not yet", Hint: "wait"},
		{Rule: "names", Outcome: trace.Refuse, Detail: strings.Repeat("ä", 50), Hint: "ask for <a> & \"b\""},
	}}
	text := review.Encode(d, 21)
	const want = `{"verdict":"Deny","rule":"names","checks":["signer","machine: node a is machine i-1…","silent",` +
		`{"rule":"later","outcome":"Wait","detail":"not yet","hint":"wait"},` +
		`{"rule":"names","outcome":"Refuse","detail":"ääääääääää…","hint":"ask for <a> & \"b\""}]}`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	got, ok := review.Decode(text)
	if !ok {
		t.Fatalf("cannot be read back: %s", text)
	}
	back := trace.Decision{Verdict: trace.Deny, Rule: "names", Checks: []trace.Check{
		{Rule: "signer", Outcome: trace.Pass},
		{Rule: "machine", Outcome: trace.Pass, Detail: "node a is machine i-1…", Evidence: true},
		{Rule: "silent", Outcome: trace.Pass},
		{Rule: "later", Outcome: trace.Waiting, Detail: "not yet", Hint: "wait"},
		{Rule: "names", Outcome: trace.Refuse, Detail: "ääääääääää…", Hint: `ask for <a> & "b"`},
	}}
	if diff := cmp.Diff(back, got); diff != "" {
		t.Error(diff)
	}
}

func TestDecisionsThatWereWrittenOtherwise(t *testing.T) {
	long := `{"verdict":"Approve","checks":[{"rule":"key","outcome":"Pass","detail":"ECDSA 256"}]}`
	if d, ok := review.Decode(long); !ok || len(d.Checks) != 1 || d.Checks[0] != (trace.Check{Rule: "key", Outcome: trace.Pass, Detail: "ECDSA 256"}) {
		t.Errorf("%+v, %v", d, ok)
	}
	for _, text := range []string{"", "{}", "yes", `{"verdict":"","checks":[]}`, `{"verdict":"Deny","checks":[7]}`, `{"verdict":"Deny","checks":["a"]`} {
		if d, ok := review.Decode(text); ok {
			t.Errorf("%q was read as %+v", text, d)
		}
	}
}
