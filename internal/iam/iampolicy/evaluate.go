// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"fmt"
	"slices"
	"strings"
)

// Rights are the policies that bound what a caller may do.
type Rights struct {
	Root     bool    // the account's root: everything, apart from what it may not do at all
	Identity []Named // attached to the user or role, and inline
	Boundary *Named  // the permissions boundary of the user or role, which must allow too; nil without
	Session  []Named // passed when the session was made
	Scoped   bool    // session policies were passed: Session must allow too, even if it is empty
}

// Evaluate asks one document. A Deny is told before any Allow.
func (d Document) Evaluate(r Request) Decision {
	if d.Kind.hasPrincipals() && !d.Bound() {
		return Decision{Reason: "the policy names a principal that is not bound to a unique ID: save the policy again"}
	}
	r.Context = lowered(r.Context)
	best := Decision{Reason: "no statement is about this"}
	for i, s := range d.Statements {
		naming := NotNamed
		if d.Kind.hasPrincipals() {
			if naming = s.names(r.Caller); naming == NotNamed {
				continue
			}
		}
		applies, reason := s.applies(r, d.Kind == Trust)
		if !applies {
			continue
		}
		decision := Decision{Statement: i + 1, SID: s.SID, Naming: naming, Reason: reason}
		if s.Effect == DenyEffect {
			decision.Verdict = Deny
			return decision
		}
		if decision.Verdict = Allow; best.Verdict != Allow || naming > best.Naming {
			best = decision
		}
	}
	return best
}

// lowered returns condition keys in small letters. Tags of a resource or a request may have keys that differ in capitals
// alone, which are one condition key: it has the values of all of them. So an operator for one value cannot tell, which
// allows nothing and denies, where one of the values could be chosen by whoever gave the tags.
func lowered(context map[string][]string) map[string][]string {
	low := make(map[string][]string, len(context))
	for key, values := range context {
		key = strings.ToLower(key)
		had, twice := low[key]
		switch {
		case !twice:
			low[key] = values
		case !slices.Equal(had, values):
			low[key] = slices.Concat(had, values)
		}
	}
	return low
}

func (s Statement) names(c Caller) Naming {
	closest := NotNamed
	for _, p := range s.Principals {
		naming := p.names(c)
		if p.Kind == Anyone && s.Effect == DenyEffect { // services, too: a Deny for all closes the role to machines
			naming = AsRoleOrAnyone
		}
		closest = max(closest, naming)
	}
	return closest
}

func (s Statement) applies(r Request, trust bool) (bool, string) {
	find := func(key string) (string, bool) {
		if values := r.Context[key]; len(values) == 1 {
			return values[0], true
		}
		return "", false
	}
	byAction := func(p pattern) bool { return p.matchAction(r.Action) }
	byResource := func(p pattern) bool {
		fits, _ := p.matchARN(r.Resource, find)
		return fits
	}
	switch {
	case s.actions != nil && !slices.ContainsFunc(s.actions, byAction),
		s.notActions != nil && slices.ContainsFunc(s.notActions, byAction),
		!trust && s.resources != nil && !slices.ContainsFunc(s.resources, byResource),
		!trust && s.notResources != nil && !s.outside(r.Resource, find):
		return false, ""
	case s.actions == nil && s.notActions == nil:
		return s.Effect == DenyEffect, "the statement was not read by Parse"
	}
	for _, c := range s.conditions {
		holds, err := c.holds(r.Context, find)
		if err != nil {
			// Nobody can tell, so what is safe: no Allow, but a Deny.
			return s.Effect == DenyEffect, err.Error()
		}
		if !holds {
			return false, ""
		}
	}
	return true, fmt.Sprintf("%s by a statement", s.Effect)
}

// outside reports whether NotResource leaves the resource to the statement. When a variable has no value nobody can
// tell: no Allow, but a Deny.
func (s Statement) outside(resource string, find lookup) bool {
	for _, p := range s.notResources {
		fits, known := p.matchARN(resource, find)
		if !known && s.Effect == AllowEffect || fits {
			return false
		}
	}
	return true
}

// Decide asks all documents: one Deny is a Deny, else one Allow is an Allow.
func Decide(policies []Named, r Request) Decision {
	best := Decision{Reason: "no policy allows " + r.Action}
	for _, policy := range policies {
		decision := policy.Document.Evaluate(r)
		decision.Policy = policy.Name
		if decision.Verdict == Deny {
			return decision
		}
		if decision.Verdict == Allow && best.Verdict != Allow {
			best = decision
		}
	}
	return best
}

// Decide reports whether the caller's own policies allow the request: its identity policies, its permissions boundary
// and its session policies, each of those that there are. A Deny of any of them comes first.
func (rights Rights) Decide(r Request) Decision {
	identity := Decision{Verdict: Allow, Reason: "the account's root may do everything"}
	if !rights.Root {
		identity = Decide(rights.Identity, r)
	}
	identity.By = Identity
	return together(append([]Decision{identity}, rights.bounds(r)...))
}

// bounds are the decisions of what bounds the caller beside its identity policies.
func (rights Rights) bounds(r Request) []Decision {
	var all []Decision
	if rights.Boundary != nil {
		d := Decide([]Named{*rights.Boundary}, r)
		d.By = Boundary
		if d.Verdict == Neutral {
			d.Policy, d.Reason = rights.Boundary.Name, "the permissions boundary does not allow "+r.Action
		}
		all = append(all, d)
	}
	if rights.Scoped {
		d := Decide(rights.Session, r)
		d.By = SessionLayer
		if d.Verdict == Neutral {
			d.Reason = "no session policy allows " + r.Action
		}
		all = append(all, d)
	}
	return all
}

// together is the first Deny, else the first that does not allow, else the first.
func together(all []Decision) Decision {
	for _, verdict := range []Verdict{Deny, Neutral} {
		if i := slices.IndexFunc(all, func(d Decision) bool { return d.Verdict == verdict }); i >= 0 {
			return all[i]
		}
	}
	return all[0]
}

// Assume reports whether the caller may take the role. A principal of the role's own account that the trust policy
// names needs nothing more. A principal that the trust policy lets in by naming the account, or that is of another
// account, also needs an identity policy that allows it. r.Resource is the role's ARN.
func Assume(trust Named, roleAccount string, rights Rights, r Request) Decision {
	if rights.Root && r.Caller.Service == "" {
		return Decision{Reason: "an account's root may not take roles: use a user"}
	}
	by := trust.Document.Evaluate(r)
	by.Policy, by.By = trust.Name, TrustLayer
	if trust.Document.Kind != Trust {
		return Decision{Policy: trust.Name, Reason: "the document is not a trust policy"}
	}
	if by.Verdict == Deny || r.Caller.Service != "" {
		return by
	}
	own := rights.Decide(r)
	switch {
	case own.Verdict == Deny:
		return own
	case by.Verdict == Neutral:
		by.Reason = "the role's trust policy does not let the caller in: " + by.Reason
		return by
	case own.Verdict == Allow, r.Caller.Account == roleAccount && by.Naming == ByItself:
		return by
	case r.Caller.Account == roleAccount && by.Naming == AsRoleOrAnyone:
		return together(append(rights.bounds(r), by))
	}
	own.Reason = "the trust policy lets the account in, and " + own.Reason + " to the caller"
	return own
}

// WithResource reports whether the caller may do what r asks of a resource that has a policy of its own. Within the
// account that owns the resource, the caller's policies or the resource's may allow it; a caller of another account needs
// both; a service needs the resource's. A Deny of any of them comes first (IAM user guide, "Policy evaluation logic").
func WithResource(of Named, owner string, rights Rights, r Request) Decision {
	if of.Document.Kind != OfResource {
		return Decision{Policy: of.Name, Reason: "the document is not the policy of a resource"}
	}
	by := of.Document.Evaluate(r)
	by.Policy, by.By = of.Name, ResourceLayer
	if by.Verdict == Deny || r.Caller.Service != "" {
		return by
	}
	own := rights.Decide(r)
	switch {
	case own.Verdict == Deny:
		return own
	case r.Caller.Account != owner:
		return together([]Decision{own, by})
	case own.Verdict == Allow, by.Verdict == Neutral:
		return own
	case by.Naming == ByItself:
		return by
	case by.Naming == AsRoleOrAnyone:
		return together(append(rights.bounds(r), by))
	}
	return own
}
