// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// The page has a section for every rule, in the order they run, and each says the same four things.
func TestPageOfRulesIsComplete(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(raw), "\n### ")[1:]
	heading := regexp.MustCompile("^`([a-z-]+)`\n")
	var ids []decision.RuleID
	for _, s := range sections {
		m := heading.FindStringSubmatch(s)
		if m == nil {
			t.Fatalf("no rule's name stands at the head of:\n%s", s)
		}
		ids = append(ids, decision.RuleID(m[1]))
		for _, part := range []string{"* **Refuses**", "* **Why** ", "* **Verdict** ", "* **What to do** "} {
			if strings.Count(s, "\n"+part) != 1 {
				t.Errorf("the section of %s has no line, or more than one, that begins with %s", m[1], part)
			}
		}
	}
	if diff := cmp.Diff(policy.RuleIDs(), ids); diff != "" {
		t.Errorf("rules and docs/rules.md (-rules +page):\n%s", diff)
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(ids))); len(sorted) != len(ids) {
		t.Error("a rule stands there twice")
	}
}
