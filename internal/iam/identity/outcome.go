// SPDX-License-Identifier: Apache-2.0

package identity

import "muster.dev/muster/internal/platform/decision"

// Check is what one entry said of a principal.
type Check struct {
	Source Source `json:"source"`
	Entry  string `json:"entry"`
	decision.Check
}

// Outcome is what becomes of a principal.
type Outcome struct {
	User   User `json:"user"`
	Mapped bool `json:"mapped"`
	// Trusted means that it is mapped to a node because the authenticator's configuration trusts the name of its
	// session: nothing proves that it is that node's.
	Trusted bool `json:"trusted,omitempty"`
	// Source and Entry are those that decided, also where they refused. They are empty where no entry matches.
	Source Source `json:"source,omitempty"`
	Entry  string `json:"entry,omitempty"`
	// Checks are the entries that were looked at: by [Table.Map] those that name the principal, by [Table.Explain] all
	// of them.
	Checks []Check `json:"checks,omitempty"`
	// Rule, Reason and Fix say why it is not mapped.
	Rule   decision.RuleID `json:"rule,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Fix    string          `json:"fix,omitempty"`
}
