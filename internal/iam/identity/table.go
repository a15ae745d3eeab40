// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
)

// Options are how mappings are read.
type Options struct {
	Mode Mode // empty is API_AND_CONFIG_MAP
	// Partition is the cluster's; empty is aws.
	Partition string
	// Cluster is its name, which machines are compared with.
	Cluster string
	// Account is the cluster's. If it is set, access entries of nodes must be of it.
	Account string
	// PrincipalIDs means that access entries have the ids of their principals: one without is not used.
	PrincipalIDs bool
	// RolePatterns allows mappings of many roles at once: sso, and * in the name of a role.
	RolePatterns bool
	// Reserved are the prefixes that user names of a source must not have; a source that is not in it has
	// [DefaultReserved].
	Reserved map[Source][]string
	// Trusted are the roles whose sessions' names are trusted to be those of their nodes.
	Trusted []TrustedSessions
	// Scrubbed are the accounts of which nothing is told but the user name (aws-iam-authenticator's scrubbedAccounts).
	Scrubbed []string
}

// Sources are all of them, in the order in which they are asked.
func Sources() []Source {
	return []Source{SourceAccessEntry, SourceIdentityMapping, SourceAWSAuth, SourceFile}
}

// Asks reports whether a source is asked in the mode.
func (m Mode) Asks(s Source) bool {
	switch m {
	case ModeAPI:
		return s == SourceAccessEntry
	case ModeConfigMap:
		return s != SourceAccessEntry
	default:
		return true
	}
}

// scope is an account of a partition.
type scope struct{ partition, account string }

// Table is an immutable snapshot of all mappings. The zero Table maps nobody.
type Table struct {
	mode     Mode
	scrubbed map[string]bool
	rules    []rule
	used     int
	// Each holds the places of rules, which are in the order in which they are asked.
	byKey     map[key][]int32
	byAccount map[string][]int32
	byID      map[string][]int32
	patterns  map[scope][]int32
}

// NewTable makes a table of entries, and says what is wrong with them. The entries of each source are taken in the
// order given, accounts last; the sources in their own order, whatever the order of mappings.
func NewTable(options Options, entries []AccessEntry, mappings []Mapping) (Table, []Problem) {
	c := compiler{options: options}
	t := Table{
		mode: options.Mode, scrubbed: map[string]bool{},
		byKey: map[key][]int32{}, byAccount: map[string][]int32{}, byID: map[string][]int32{}, patterns: map[scope][]int32{},
	}
	if t.mode == "" {
		t.mode = ModeAPIAndConfigMap
	}
	if !slices.Contains(Modes(), t.mode) {
		c.problems = append(c.problems, Problem{Field: "mode", Saw: fmt.Sprintf("is not a mode: %q", t.mode), Fix: "it is CONFIG_MAP, API_AND_CONFIG_MAP or API; nobody is mapped", Unused: true})
		return Table{}, c.problems
	}
	c.trust(options.Trusted)
	for _, account := range options.Scrubbed {
		t.scrubbed[account] = true
	}
	for _, e := range entries {
		t.add(&c, e.draft(&c))
	}
	for _, source := range Sources() {
		for _, accounts := range []bool{false, true} {
			for _, m := range mappings {
				if m.Source == source && source != SourceAccessEntry && (m.Kind == KindAccount) == accounts {
					t.add(&c, m.draft())
				}
			}
		}
	}
	for _, m := range mappings {
		if m.Source == SourceAccessEntry || !slices.Contains(Sources(), m.Source) {
			c.problems = append(c.problems, Problem{Source: m.Source, Entry: m.Entry, Saw: "is of no source of mappings", Fix: "say where it is from", Unused: true})
		}
	}
	return t, c.problems
}

// add reads an entry and lists it where it is looked for. Entries that are not used are listed too, for the sake of
// explaining.
func (t *Table) add(c *compiler, d draft) {
	r := c.compile(d)
	r.idle = !t.mode.Asks(d.source)
	place := int32(len(t.rules)) //nolint:gosec // a table of two thousand million entries does not fit in memory
	switch {
	case r.kind == KindAccount:
		t.shadowed(c, &r, t.byAccount[r.key.account])
		t.byAccount[r.key.account] = append(t.byAccount[r.key.account], place)
	case r.pattern != "":
		s := scope{r.key.partition, r.key.account}
		t.shadowed(c, &r, t.patterns[s])
		t.patterns[s] = append(t.patterns[s], place)
	case r.byID:
		t.shadowed(c, &r, t.byID[r.principalID])
		t.byID[r.principalID] = append(t.byID[r.principalID], place)
	case r.key != key{}:
		t.shadowed(c, &r, t.byKey[r.key])
		t.byKey[r.key] = append(t.byKey[r.key], place)
	}
	if r.problem == nil && !r.idle {
		t.used++
	}
	t.rules = append(t.rules, r)
}

// shadowed takes an entry out of use that an earlier one of its source always comes before.
func (t *Table) shadowed(c *compiler, r *rule, earlier []int32) {
	for _, i := range earlier {
		e := &t.rules[i]
		if r.problem != nil || e.problem != nil || e.source != r.source || e.kind != r.kind || e.pattern != r.pattern ||
			e.path != "/" && e.path != r.path || e.principalID != "" && e.principalID != r.principalID {
			continue
		}
		c.rule = r
		c.refuse(c.draft.fields.arn, fault{fmt.Sprintf("names the same principal as %s, which comes first", e.entry), "remove one of the two; here the first counts, aws-iam-authenticator takes the last"})
	}
}

// Len is the number of entries in use.
func (t Table) Len() int { return t.used }
