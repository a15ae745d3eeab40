// SPDX-License-Identifier: Apache-2.0

// Package tokenrefusal is the reason for which a token is not accepted: the rule, what was seen, and the fix; never the
// token.
package tokenrefusal

import "fmt"

// shown is how many bytes of what was sent a refusal repeats.
const shown = 80

// Refusal is why a token is not accepted. It has no secrets.
type Refusal struct {
	Rule string // that refused
	Saw  string // the value that it saw, if that can be said
	Fix  string // advice to the sender
}

// New makes a refusal.
func New(rule, saw, fix string) *Refusal { return &Refusal{Rule: rule, Saw: saw, Fix: fix} }

// Error is the refusal in one line.
func (r *Refusal) Error() string {
	if r.Saw == "" {
		return r.Rule + ": " + r.Fix
	}
	return r.Rule + ": saw " + r.Saw + "; " + r.Fix
}

// Quote shows the beginning of what was sent, on one line.
func Quote(s string) string {
	if len(s) > shown {
		return fmt.Sprintf("%q…", s[:shown])
	}
	return fmt.Sprintf("%q", s)
}
