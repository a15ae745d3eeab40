// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/trace"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

func denied() trace.Decision {
	return trace.Decision{
		Verdict: trace.Deny,
		Rule:    "common-name",
		Checks: []trace.Check{
			{Rule: "signer", Outcome: trace.Pass, Detail: "kubernetes.io/kubelet-serving"},
			{Rule: "common-name", Outcome: trace.Refuse, Detail: `the common name is "x"`, Hint: "it must be system:node:<node name>"},
			{Rule: "san-count", Outcome: trace.NotApplicable},
			{Rule: "machine", Outcome: trace.Waiting, Detail: "the inventory is not loaded yet"},
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
	approved := trace.Decision{Verdict: trace.Approve, Checks: []trace.Check{
		{Rule: "a", Outcome: trace.Pass},
		{Rule: "b", Outcome: trace.NotApplicable},
	}}
	for _, tc := range []struct {
		name string
		in   trace.Decision
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
	d := trace.Decision{Verdict: trace.Approve, Checks: []trace.Check{{Rule: "", Outcome: trace.Pass}}}
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
	soon := trace.Check{Rule: "a", Outcome: trace.Waiting, Soon: true}
	later := trace.Check{Rule: "b", Outcome: trace.Waiting}
	passed := trace.Check{Rule: "c", Outcome: trace.Pass, Soon: true}
	for _, tc := range []struct {
		name string
		in   trace.Decision
		want bool
	}{
		{"it waits for a look-up", trace.Decision{Verdict: trace.Wait, Checks: []trace.Check{soon}}, true},
		{"for one, and for something else", trace.Decision{Verdict: trace.Wait, Checks: []trace.Check{later, soon}}, true},
		{"for something else", trace.Decision{Verdict: trace.Wait, Checks: []trace.Check{later, passed}}, false},
		{"it does not wait", trace.Decision{Verdict: trace.Deny, Checks: []trace.Check{soon}}, false},
	} {
		if got := tc.in.Soon(); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
