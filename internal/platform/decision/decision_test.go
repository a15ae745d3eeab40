// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/decision"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

func denied() decision.Decision {
	return decision.Decision{
		Verdict: decision.Deny,
		Rule:    "common-name",
		Checks: []decision.Check{
			{Rule: "signer", Outcome: decision.Pass, Detail: "kubernetes.io/kubelet-serving"},
			{Rule: "common-name", Outcome: decision.Refuse, Detail: `the common name is "x"`, Hint: "it must be system:node:<node name>"},
			{Rule: "san-count", Outcome: decision.NotApplicable},
			{Rule: "machine", Outcome: decision.Waiting, Detail: "the inventory is not loaded yet"},
		},
	}
}

func TestDecisionAsText(t *testing.T) {
	golden(t, "denied.txt", denied().String())
}

func TestDecisionAsJSON(t *testing.T) {
	b, err := json.MarshalIndent(denied(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "denied.json", string(b)+"\n")
}

func TestSummary(t *testing.T) {
	approved := decision.Decision{Verdict: decision.Approve, Checks: []decision.Check{
		{Rule: "a", Outcome: decision.Pass},
		{Rule: "b", Outcome: decision.NotApplicable},
	}}
	for _, tc := range []struct {
		name string
		in   decision.Decision
		want string
	}{
		{"approval names no rule", approved, "Approve: all 1 rules that apply passed"},
		{"refusal names the rule, what it saw and what to do", denied(), `Deny by rule common-name: the common name is "x"; it must be system:node:<node name>`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.in.Summary(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestDecidingOfAnApprovalIsNone(t *testing.T) {
	d := decision.Decision{Verdict: decision.Approve, Checks: []decision.Check{{Rule: "", Outcome: decision.Pass}}}
	if c, ok := d.Deciding(); ok {
		t.Errorf("approval was decided by %+v", c)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), -update rewrites it:\n%s", name, diff)
	}
}

func TestSoon(t *testing.T) {
	soon := decision.Check{Rule: "a", Outcome: decision.Waiting, Soon: true}
	later := decision.Check{Rule: "b", Outcome: decision.Waiting}
	passed := decision.Check{Rule: "c", Outcome: decision.Pass, Soon: true}
	for _, tc := range []struct {
		name string
		in   decision.Decision
		want bool
	}{
		{"it waits for a look-up", decision.Decision{Verdict: decision.Wait, Checks: []decision.Check{soon}}, true},
		{"for one, and for something else", decision.Decision{Verdict: decision.Wait, Checks: []decision.Check{later, soon}}, true},
		{"for something else", decision.Decision{Verdict: decision.Wait, Checks: []decision.Check{later, passed}}, false},
		{"it does not wait", decision.Decision{Verdict: decision.Deny, Checks: []decision.Check{soon}}, false},
	} {
		if got := tc.in.Soon(); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
