// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"slices"

	"muster.dev/muster/internal/aws/logsinsights"
)

// Field is a value of a row, as GetQueryResults has it.
type Field struct{ Name, Value string }

// Result is the answer of a query.
type Result struct {
	Columns []string  // without @ptr
	Rows    [][]Field // without fields that a row lacks
	// Statistics as GetQueryResults has them. The events that the log store filtered out are neither scanned nor matched.
	Matched, Scanned, Bytes int
}

// pointer is the field that ends each row of an event.
const pointer = "@ptr"

// Columns returns the names of the fields that a query shows.
func Columns(q *logsinsights.Query) []string {
	var shown, added []string
	displayed := false
	for _, command := range q.Commands {
		switch c := command.(type) {
		case *logsinsights.Fields:
			if c.Display {
				shown, added, displayed = nil, nil, true
			}
			if c.Display || !displayed {
				shown = append(shown, names(c.Items)...)
			}
		case *logsinsights.Stats:
			shown, added, displayed = append(names(c.By), names(c.Items)...), nil, false
		case *logsinsights.Pattern:
			shown, added, displayed = slices.Clone(logsinsights.PatternFields), nil, false
		case *logsinsights.Extract:
			if !displayed {
				added = append(added, c.Names...)
			}
		case *logsinsights.Unnest:
			if !displayed {
				added = append(added, c.As)
			}
		}
	}
	if len(shown) == 0 {
		shown = []string{"@timestamp", "@message"}
	}
	return unique(append(shown, added...))
}

func names(items []logsinsights.Item) []string {
	all := make([]string, len(items))
	for i, item := range items {
		all[i] = item.Name
	}
	return all
}

// unique drops names that came before, and empty ones.
func unique(names []string) []string {
	var all []string
	for _, name := range names {
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func fieldsOf(r *row, columns []*logsinsights.Name) []Field {
	fields := make([]Field, 0, len(columns)+1)
	for _, column := range columns {
		if value := r.find(column); !value.IsNull() {
			fields = append(fields, Field{column.Flat, value.String()})
		}
	}
	if r.event != nil && r.event.Pointer != "" {
		fields = append(fields, Field{pointer, r.event.Pointer})
	}
	return fields
}
