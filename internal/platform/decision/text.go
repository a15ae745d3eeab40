// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"strings"
)

// Summary is the decision in one line: the verdict, the rule that decided, its evidence, and the fix.
func (d Decision) Summary() string {
	c, ok := d.Deciding()
	if !ok {
		passed := 0
		for _, c := range d.Checks {
			if c.Outcome == Pass {
				passed++
			}
		}
		// Of the others nothing is said: a decision that was written down has them no more.
		return fmt.Sprintf("%s: all %d rules that apply passed", d.Verdict, passed)
	}
	return fmt.Sprintf("%s by rule %s: %s", d.Verdict, c.Rule, c.Sentence())
}

// Sentence is the rule's evidence and the fix.
func (c Check) Sentence() string {
	if c.Hint == "" {
		return c.Detail
	}
	return c.Detail + "; " + c.Hint
}

// String is the decision for people: the summary, then one line for each check.
func (d Decision) String() string {
	var b strings.Builder
	b.WriteString(d.Summary())
	b.WriteByte('\n')
	width := 0
	for _, c := range d.Checks {
		width = max(width, len(c.Rule))
	}
	for _, c := range d.Checks {
		line := fmt.Sprintf("  %-7s %-*s  %s", c.Outcome.mark(), width, c.Rule, c.Sentence())
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	return b.String()
}

func (o Outcome) mark() string {
	switch o {
	case Pass:
		return "pass"
	case Refuse:
		return "REFUSE"
	case Waiting:
		return "wait"
	case NotApplicable:
		return "-"
	default:
		return "?"
	}
}
