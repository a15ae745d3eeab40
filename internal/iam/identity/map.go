// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/platform/decision"
)

// Map returns the user that a principal becomes. It does no I/O, and its cost does not depend on the number of entries,
// but for patterns of the principal's own account. Its result is shared with others, so it is for reading only.
func (t Table) Map(p Principal) Outcome {
	k, path, _ := keyOf(p.CanonicalARN)
	if f := inconsistent(p, k); f != nil {
		return Outcome{Rule: RulePrincipal, Reason: f.saw, Fix: f.fix}
	}
	var space [8]int32
	places := append(space[:0], t.byKey[k]...)
	for _, i := range t.patterns[scope{k.partition, k.account}] {
		if _, ok := t.rules[i].matches(p, k, path); ok {
			places = append(places, i)
		}
	}
	places = append(places, t.byID[p.UserID]...)
	places = append(places, t.byAccount[p.Account]...)
	slices.Sort(places)
	return t.walk(p, k, path, places)
}

// walk asks the entries at those places, in order, until one decides.
func (t Table) walk(p Principal, k key, path string, places []int32) Outcome {
	var o Outcome
	for _, i := range places {
		r := &t.rules[i]
		by, ok := r.matches(p, k, path)
		switch {
		case r.problem != nil && (ok || by == RulePrincipalID):
			o.Checks = append(o.Checks, r.check(RuleEntry, decision.Refuse, r.problem.told(), r.problem.Fix))
		case r.problem != nil:
			o.Checks = append(o.Checks, r.check(RuleEntry, decision.NotApplicable, r.problem.told(), r.problem.Fix))
		case r.idle:
			outcome := decision.NotApplicable
			if ok {
				outcome = decision.Refuse
			}
			o.Checks = append(o.Checks, r.check(RuleMode, outcome, fmt.Sprintf("the authentication mode %s does not ask this source", t.mode), t.mode.otherThan(r.source)))
		case !ok && by == RulePrincipalID:
			o.Checks = append(o.Checks, r.check(by, decision.Refuse, fmt.Sprintf("it is for the principal %s, and this is %s: another one of that name, made after the first was deleted", r.principalID, or(p.UserID, "unknown")),
				"if the entry is for this principal, delete the entry and create it again"))
		case !ok:
			o.Checks = append(o.Checks, r.check(by, decision.NotApplicable, r.difference(p, k, path), ""))
		default:
			return t.decide(p, r, o)
		}
	}
	return t.nobody(p, o)
}

// decide is the outcome of the first entry that matches, whether it gives a name or refuses to.
func (t Table) decide(p Principal, r *rule, o Outcome) Outcome {
	o.Source, o.Entry = r.source, r.entry
	name, groups, refusal := r.render(p)
	if refusal != nil {
		o.Rule, o.Reason, o.Fix = refusal.rule, refusal.saw, refusal.fix
		o.Checks = append(o.Checks, r.check(refusal.rule, decision.Refuse, refusal.saw, refusal.fix))
		return o
	}
	o.Mapped, o.Trusted = true, r.trusted != nil && p.Instance == nil
	by, detail := RuleMatch, r.subject
	if o.Trusted {
		by, detail = RuleTrustedName, fmt.Sprintf("the authenticator's configuration trusts this name of a session of %s", r.subject)
	}
	o.Checks = append(o.Checks, r.check(by, decision.Pass, detail, ""))
	o.User = t.user(p, name, groups)
	return o
}

// nobody is the outcome where no entry decides. The entries that would have, but for something, say more than that.
func (t Table) nobody(p Principal, o Outcome) Outcome {
	for _, c := range o.Checks {
		if c.Outcome == decision.Refuse {
			o.Source, o.Entry = c.Source, c.Entry
			o.Rule, o.Reason, o.Fix = c.Rule, fmt.Sprintf("%s %s names %s, but %s", c.Source, c.Entry, p.CanonicalARN, c.Detail), c.Hint
			return o
		}
	}
	o.Rule = RuleNoEntry
	o.Reason = fmt.Sprintf("no entry names %s", p.CanonicalARN)
	o.Fix = "make an access entry for it, or add it to aws-auth (" + p.CanonicalARN.String() + ")"
	switch t.mode {
	case ModeAPI:
		o.Fix = "make an access entry for it: " + p.CanonicalARN.String()
	case ModeConfigMap:
		o.Fix = "add it to aws-auth (" + p.CanonicalARN.String() + ")"
	case ModeAPIAndConfigMap:
	}
	return o
}

func (r *rule) check(by decision.RuleID, outcome decision.Outcome, detail, hint string) Check {
	return Check{Source: r.source, Entry: r.entry, Check: decision.Check{Rule: by, Outcome: outcome, Detail: detail, Hint: hint}}
}

// otherThan is what to do where the mode does not ask a source.
func (m Mode) otherThan(s Source) string {
	if s == SourceAccessEntry {
		return "change the mode to API_AND_CONFIG_MAP, or write the entry in aws-auth"
	}
	return fmt.Sprintf("make an access entry for it, which the mode %s asks", m)
}

// told is the problem as part of a sentence.
func (p Problem) told() string {
	if p.Field == "" {
		return "it " + p.Saw
	}
	return "its " + p.Field + " " + p.Saw
}

// inconsistent returns a fault if the parts of STS's answer, as the backend reports it, contradict each other. That
// happens only if a backend is wrong.
func inconsistent(p Principal, k key) *fault {
	const fix = "this is a defect of the STS backend; report it"
	switch {
	case p.ARN.IsZero() || p.CanonicalARN.IsZero():
		return &fault{"the principal has no ARN", fix}
	case !isAccount(p.Account) || p.CanonicalARN.Account != p.Account || p.ARN.Account != p.Account:
		return &fault{fmt.Sprintf("the principal %s is said to be of account %q", p.ARN, p.Account), fix}
	}
	if role, session, ok := p.ARN.AssumedRole(); ok { // with a path in it, if the backend knows one
		resource, ok := strings.CutSuffix(p.CanonicalARN.Resource, role)
		if k.kind != KindRole || !ok || !strings.HasSuffix(resource, "/") || p.SessionName != session || p.CanonicalARN.Partition != p.ARN.Partition {
			return &fault{fmt.Sprintf("the session %s is said to be %q of %s", p.ARN, p.SessionName, p.CanonicalARN), fix}
		}
		return nil
	}
	if k.kind == KindRole {
		return &fault{fmt.Sprintf("%s is a role, and nobody has one but in a session of it", p.ARN), fix}
	}
	if p.ARN != p.CanonicalARN {
		return &fault{fmt.Sprintf("the principal %s is said to be %s", p.ARN, p.CanonicalARN), fix}
	}
	return nil
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
