// SPDX-License-Identifier: Apache-2.0

package decision

import "slices"

// Verdict is what came of a decision.
type Verdict string

// The four verdicts.
const (
	// Approve: every rule that applies passed.
	Approve Verdict = "Approve"
	// Deny: a hard no, which nothing that may yet happen can change.
	Deny Verdict = "Deny"
	// Wait: not yet. It is asked again when something changes.
	Wait Verdict = "Wait"
	// Ignore: left to somebody else, a person or another controller.
	Ignore Verdict = "Ignore"
)

// RuleID names a rule. It is stable: documentation, metrics, events and tests share it.
type RuleID string

// Outcome is what one rule said.
type Outcome string

// The four outcomes. The zero value is none of them, and never counts as a pass.
const (
	Pass          Outcome = "Pass"
	Refuse        Outcome = "Refuse"
	Waiting       Outcome = "Wait"
	NotApplicable Outcome = "NotApplicable"
)

// Check is one rule that ran.
type Check struct {
	Rule    RuleID  `json:"rule"`
	Outcome Outcome `json:"outcome"`
	// Detail is what the rule saw, as a person would say it.
	Detail string `json:"detail,omitempty"`
	// Hint says how to fix the problem, if a person can fix it.
	Hint string `json:"hint,omitempty"`
	// Soon means that the rule waits for something that is being looked up right now.
	Soon bool `json:"-"`
	// Evidence means that the detail says more than the request itself and the name of the rule that passed.
	Evidence bool `json:"-"`
}

// Decision is a verdict with the outcome of every rule that ran, in the order they ran.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Rule decided: the first that spoke for the verdict. Empty on approval, which takes all of them.
	Rule   RuleID  `json:"rule,omitempty"`
	Checks []Check `json:"checks"`
}

// Deciding returns the check of the rule that decided, and false on approval.
func (d Decision) Deciding() (Check, bool) {
	for _, c := range d.Checks {
		if d.Rule != "" && c.Rule == d.Rule {
			return c, true
		}
	}
	return Check{}, false
}

// Soon reports whether it waits and part of what it waits for is being looked up right now: there will be another
// decision in a moment, so nobody need be told of this one.
func (d Decision) Soon() bool {
	return d.Verdict == Wait && slices.ContainsFunc(d.Checks, func(c Check) bool { return c.Outcome == Waiting && c.Soon })
}
