// SPDX-License-Identifier: Apache-2.0

package ststoken

import "fmt"

// Rules that refuse, in the order in which they are asked.
const (
	RuleCluster       = "cluster id"
	RuleSize          = "size"
	RulePrefix        = "prefix"
	RuleEncoding      = "encoding"
	RuleURL           = "url"
	RuleScheme        = "scheme"
	RuleHost          = "host"
	RulePath          = "path"
	RuleDuplicate     = "duplicate parameter"
	RuleParameter     = "parameter"
	RuleValue         = "parameter value"
	RuleMissing       = "missing parameter"
	RuleAction        = "action"
	RuleVersion       = "version"
	RuleSignedHeaders = "signed headers"
	RuleSignature     = "signature" // whatever package sigv4 refuses
	RuleExpires       = "expires"
	RuleService       = "service"
	RuleRegion        = "region"
	RuleExpired       = "expired"
	RuleEarly         = "not yet valid"
)

// shown is how many bytes of what was sent a refusal repeats.
const shown = 80

// Refusal says why a token is not accepted. It has no secrets.
type Refusal struct {
	Rule string // that refused
	Saw  string // what it saw, if that can be said
	Fix  string // what to do
}

// Error is the refusal in one line.
func (r *Refusal) Error() string {
	if r.Saw == "" {
		return r.Rule + ": " + r.Fix
	}
	return r.Rule + ": saw " + r.Saw + "; " + r.Fix
}

func refuse(rule, saw, fix string) *Refusal { return &Refusal{Rule: rule, Saw: saw, Fix: fix} }

// quote shows what was sent, but not all of it and on one line.
func quote(s string) string {
	if len(s) > shown {
		return fmt.Sprintf("%q…", s[:shown])
	}
	return fmt.Sprintf("%q", s)
}
