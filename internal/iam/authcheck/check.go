// SPDX-License-Identifier: Apache-2.0

package authcheck

import "muster.dev/muster/internal/iam/identity"

// Result is what is wrong with entries, and what a principal would become by them.
type Result struct {
	Entries   int                `json:"entries"`
	Problems  []identity.Problem `json:"problems"`
	Trusts    []identity.Trust   `json:"trusts,omitempty"`
	Principal string             `json:"principal,omitempty"`
	Outcome   *identity.Outcome  `json:"outcome,omitempty"`
}

// Check checks entries as an authenticator with these options would read them. With a principal it also explains what
// that one would become: without an id it is supposed to be the one that its access entry was made for, and a note says
// so.
func (e *Entries) Check(options identity.Options, principal *identity.Principal) Result {
	table, problems := e.table(options)
	r := Result{Entries: table.Len() + e.serviceAccounts, Problems: problems, Trusts: table.Trusts()}
	if principal != nil {
		outcome := table.Explain(e.supposed(*principal))
		r.Principal, r.Outcome = principal.ARN.String(), &outcome
	}
	return r
}

// Grants returns what each entry gives to whom, as an authenticator with these options would read them, and what is
// wrong with entries.
func (e *Entries) Grants(options identity.Options) ([]identity.Grant, []identity.Problem) {
	table, problems := e.table(options)
	return table.Grants(), problems
}

// table is the table of the entries, with all that is wrong with them.
func (e *Entries) table(options identity.Options) (identity.Table, []identity.Problem) {
	options.PrincipalIDs = options.PrincipalIDs || e.principalIDs
	table, wrong := identity.NewTable(options, e.accessEntries, e.mappings)
	return table, append(append([]identity.Problem{}, e.problems...), wrong...)
}

// Good reports whether the principal is let in, or whether nothing is wrong if none was given.
func (r Result) Good() bool {
	if r.Outcome != nil {
		return r.Outcome.Mapped
	}
	return len(r.Problems) == 0
}

// supposed assumes, and notes, that a principal without a given id is the one that its access entry was made for.
func (e *Entries) supposed(p identity.Principal) identity.Principal {
	if p.UserID != "" {
		return p
	}
	for _, entry := range e.accessEntries {
		if entry.PrincipalID != "" && entry.PrincipalARN == p.CanonicalARN.String() {
			p.UserID = entry.PrincipalID
			e.note("Supposed that it is %s, for which the access entry %s was made; --principal-id names another.", p.UserID, entry.Name)
			break
		}
	}
	return p
}
