// SPDX-License-Identifier: Apache-2.0

package sigv4

import "fmt"

// Codes of AWS for what is wrong with a signature, as query services say them.
const (
	CodeMissing    = "MissingAuthenticationToken" // 403
	CodeIncomplete = "IncompleteSignature"        // 400
	CodeMismatch   = "SignatureDoesNotMatch"      // 403
)

// Rules that refuse.
const (
	RuleMissing       = "no signature"
	RuleOnce          = "one signature"
	RuleAuthorization = "Authorization header"
	RuleAlgorithm     = "algorithm"
	RuleCredential    = "credential"
	RuleSignedHeaders = "signed headers"
	RuleDate          = "date"
	RuleExpires       = "expires"
	RuleToken         = "security token"
	RuleSignature     = "signature"
	RuleQuery         = "query"
	RuleRequest       = "request"
	RuleMismatch      = "signature does not match"
	RuleExpired       = "signature expired"
	RuleEarly         = "signature not yet current"
)

// shown is how many bytes of what was sent a refusal repeats.
const shown = 96

// Refusal says why a signature is not accepted. It has no secrets.
type Refusal struct {
	Code string // AWS's
	Rule string // that refused
	Saw  string // the value that it saw, if that can be said
	Fix  string // advice to the sender
}

// Error is the refusal in one line.
func (r *Refusal) Error() string {
	if r.Saw == "" {
		return r.Rule + ": " + r.Fix
	}
	return r.Rule + ": saw " + r.Saw + "; " + r.Fix
}

func incomplete(rule, saw, fix string) *Refusal {
	return &Refusal{Code: CodeIncomplete, Rule: rule, Saw: saw, Fix: fix}
}

func mismatch(rule, saw, fix string) *Refusal {
	return &Refusal{Code: CodeMismatch, Rule: rule, Saw: saw, Fix: fix}
}

// quote shows what was sent, but not all of it and on one line.
func quote(s string) string {
	if len(s) > shown {
		return fmt.Sprintf("%q…", s[:shown])
	}
	return fmt.Sprintf("%q", s)
}
