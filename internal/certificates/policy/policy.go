// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"time"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/platform/decision"
	"muster.dev/muster/internal/platform/termsafe"
)

// Policy is what the operator may choose. Its zero value is the strictest: nothing in it can allow a name that the
// inventory does not assign to the machine that asks.
type Policy struct {
	// AllowEd25519 accepts Ed25519 keys, which kubelets do not make.
	AllowEd25519 bool
	// Signers that are served, with the profile of each. Nil means the two kubelet signers.
	Signers map[string]pki.Profile
	// MinExpiration refuses requests that ask for less. 0 means ten minutes, which is the API server's own limit.
	MinExpiration time.Duration
	// MaxExpiration refuses requests that ask for more. Below it the signer's own duration is the limit. 0 means a
	// year.
	MaxExpiration time.Duration
	// Bootstrap says which machines bootstrap tokens are good for.
	Bootstrap Bootstrap
	// ApprovalReasons are the reasons of approvals that count as a person's, beside those of kubectl and of muster csr
	// approve: of programs that approve what a person decided.
	ApprovalReasons []string
	// RequireCredential makes a node wait if the API server did not report the client certificate of its request.
	RequireCredential bool
	// ServingRenewal lets the certificate that a kubelet serves with vouch for the next one, where the inventory knows
	// no machine.
	ServingRenewal bool
	// ClusterDomain ends the names of Services, which no node may have.
	ClusterDomain string
	// ReservedNames, in lower case, no node may have: those of the API server's endpoints.
	ReservedNames []string
	// ReservedAddresses no node may have: ranges of Services, endpoints of the API server, the router.
	ReservedAddresses []netip.Prefix
	// MaxFactAge makes an older fact count as Unknown. 0 means two minutes.
	MaxFactAge time.Duration
}

// Profile of a signer name, false if requests for it are not served.
func (p Policy) Profile(signerName string) (pki.Profile, bool) {
	if p.Signers != nil {
		profile, ok := p.Signers[signerName]
		if !ok || profile.SignerName != signerName || !profile.Valid() {
			return pki.Profile{}, false
		}
		return profile, true
	}
	if signerName != pki.SignerKubeletClient && signerName != pki.SignerKubeletServing {
		return pki.Profile{}, false
	}
	return pki.ProfileFor(signerName)
}

// evaluation is one run of the rules.
type evaluation struct {
	policy  Policy
	profile pki.Profile
	request Request
	node    string // that the common name names, "" if none
	facts   Facts
	who     requester
}

// Decide runs the rules and returns what came of it. After a rule that makes the rest unreadable it stops; otherwise
// all of them run, so that all reasons are told.
func Decide(p Policy, r Request, f Facts, now time.Time) decision.Decision {
	e := evaluation{policy: p, request: r, node: r.nodeName(), facts: f.fresh(now, p.MaxFactAge)}
	if e.profile, _ = p.Profile(r.SignerName); e.profile.Node {
		e.who = identify(p, r) // for other certificates the requester does not matter
	}
	all := rules()
	d := decision.Decision{Checks: make([]decision.Check, 0, len(all))}
	verdicts := map[decision.Verdict]decision.RuleID{}
	for _, rule := range all {
		o := rule.check(e)
		d.Checks = append(d.Checks, decision.Check{
			Rule: rule.id, Outcome: o.outcome, Detail: termsafe.Line(o.detail), Hint: termsafe.Line(o.hint), Soon: o.soon, Evidence: o.evidence,
		})
		v := rule.verdict(o.outcome)
		if v != decision.Approve && rule.final && d.Rule == "" {
			d.Verdict, d.Rule = v, rule.id
		}
		if _, ok := verdicts[v]; !ok {
			verdicts[v] = rule.id
		}
		if v != decision.Approve && rule.stops {
			break
		}
	}
	if d.Rule != "" {
		return d
	}
	// The hardest verdict wins. A rule that denies speaks before one that leaves the request to others: a fault of the
	// request itself is named, even to a requester that nobody vouches for.
	for _, v := range []decision.Verdict{decision.Deny, decision.Ignore, decision.Wait} {
		if id, ok := verdicts[v]; ok {
			d.Verdict, d.Rule = v, id
			return d
		}
	}
	d.Verdict = decision.Approve
	return d
}
