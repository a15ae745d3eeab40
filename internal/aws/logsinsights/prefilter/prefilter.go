// SPDX-License-Identifier: Apache-2.0

package prefilter

import (
	"slices"

	"muster.dev/muster/internal/aws/logsinsights"
)

// Of returns a filter that each event passes which a query's answer depends on.
func Of(q *logsinsights.Query) Filter {
	t := translator{made: map[string]bool{}}
	var all []Filter
	for _, command := range q.Commands {
		switch c := command.(type) {
		case *logsinsights.Filter:
			most, _ := t.bounds(c.Condition)
			all = append(all, most)
		case *logsinsights.Fields:
			for _, item := range c.Items {
				t.make(item)
			}
		case *logsinsights.Extract:
			for _, name := range c.Names {
				t.made[name] = true
			}
		case *logsinsights.Unnest:
			t.made[c.As] = true
		case *logsinsights.Sort:
		default: // later commands see other rows
			return bounded(and(all...))
		}
	}
	return bounded(and(all...))
}

// maxFilter is how many bytes a filter may have in LogsQL. VictoriaLogs refuses a query that is too long (-search.maxQueryLen),
// and the rest of the query needs room, too.
const maxFilter = 8 << 10

// bounded leaves out what makes a filter too long: events that pass for that are dropped by the evaluation.
func bounded(f Filter) Filter {
	parts := []Filter{f}
	if f.Kind == And {
		parts = f.Parts
	}
	var kept []Filter
	left := maxFilter
	for _, part := range parts {
		if rest := part.spend(left); rest >= 0 {
			kept, left = append(kept, part), rest
		}
	}
	return and(kept...)
}

// Fields returns the names of the fields in the log store that a query's commands name, sorted: the events need no others but what
// the query shows by default. The store's own fields are not among them, other than _msg.
func Fields(q *logsinsights.Query) []string {
	wanted := map[string]bool{}
	for _, command := range q.Commands {
		for _, e := range logsinsights.Expressions(command) {
			logsinsights.Walk(e, func(x logsinsights.Expression) bool {
				if name, ok := x.(*logsinsights.Name); ok {
					if field, found := StoreField(name.Flat); found {
						wanted[field] = true
					}
				}
				return true
			})
		}
	}
	names := make([]string, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
