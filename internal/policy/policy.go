// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"
	"time"

	"muster.dev/muster/internal/trace"
)

// Policy is what the operator may choose. Its zero value is the strictest: nothing in it can allow a name that the inventory
// does not assign to the machine that asks.
type Policy struct {
	// AllowEd25519 accepts Ed25519 keys, which kubelets do not make.
	AllowEd25519 bool
	// MaxExpiration refuses requests that ask for more. Below it the signer's own duration is the limit. 0 means a year.
	MaxExpiration time.Duration
	// ClusterDomain ends the names of Services, which no node may have.
	ClusterDomain string
	// ReservedNames, in lower case, no node may have: those of the API server's endpoints.
	ReservedNames []string
	// ReservedAddresses no node may have: ranges of Services, endpoints of the API server, the router.
	ReservedAddresses []netip.Prefix
	// MaxFactAge makes an older fact count as Unknown. 0 means two minutes.
	MaxFactAge time.Duration
}

// evaluation is one run of the rules.
type evaluation struct {
	policy  Policy
	request Request
	facts   Facts
	who     requester
}

// Decide runs the rules and returns what came of it. After a rule that makes the rest unreadable it stops; otherwise all of
// them run, so that all reasons are told.
func Decide(p Policy, r Request, f Facts, now time.Time) trace.Decision {
	e := evaluation{policy: p, request: r, facts: f.fresh(now, p.MaxFactAge), who: identify(r)}
	var d trace.Decision
	verdicts := map[trace.Verdict]trace.RuleID{}
	for _, rule := range rules() {
		o := rule.check(e)
		d.Checks = append(d.Checks, trace.Check{Rule: rule.id, Outcome: o.outcome, Detail: o.detail, Hint: o.hint})
		v := rule.verdict(o.outcome)
		if _, ok := verdicts[v]; !ok {
			verdicts[v] = rule.id
		}
		if v != trace.Approve && rule.stops {
			break
		}
	}
	// The hardest verdict wins. A rule that denies speaks before one that leaves the request to others: what is wrong whoever
	// asks is said, even to a requester that nobody vouches for.
	for _, v := range []trace.Verdict{trace.Deny, trace.Ignore, trace.Wait} {
		if id, ok := verdicts[v]; ok {
			d.Verdict, d.Rule = v, id
			return d
		}
	}
	d.Verdict = trace.Approve
	return d
}

// RuleIDs lists all rules in the order they run.
func RuleIDs() []trace.RuleID {
	var ids []trace.RuleID
	for _, r := range rules() {
		ids = append(ids, r.id)
	}
	return ids
}

// Stops tells whether nothing more can be said after a rule spoke: the request is not ours, is done, or cannot be read.
func Stops(id trace.RuleID) bool {
	return slices.ContainsFunc(rules(), func(r rule) bool { return r.id == id && r.stops })
}
