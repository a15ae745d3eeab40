// SPDX-License-Identifier: Apache-2.0

package logsinsights

import "slices"

// PatternFields are the names that the pattern command makes: what the texts share, the share of rows, their number, and the
// severity that the texts name.
var PatternFields = []string{"@pattern", "@ratio", "@sampleCount", "@severityLabel"}

// check refuses what only the order of commands makes wrong.
func check(query string, q *Query) error {
	var known []string // names after stats or pattern, which are all that there is
	closed, deduplicated := false, false
	for _, command := range q.Commands {
		if _, ok := command.(*Limit); deduplicated && !ok {
			return errorAt(query, spanOf(command, query), "unexpected symbol found: only limit may follow dedup")
		}
		if err := strayPeriod(query, command); err != nil {
			return err
		}
		if closed {
			if err := knows(query, command, known); err != nil {
				return err
			}
		}
		switch c := command.(type) {
		case *Dedup:
			deduplicated = true
		case *Pattern:
			known, closed = slices.Clone(PatternFields), true
		case *Stats:
			names, err := statsNames(query, c)
			if err != nil {
				return err
			}
			known, closed = names, true
		default:
			known = append(known, made(c)...)
		}
	}
	return nil
}

// spanOf returns the first expression of a command, by which an error can point at it.
func spanOf(c Command, query string) Span {
	all := Expressions(c)
	if len(all) == 0 {
		return Span{Start: len(query)}
	}
	return all[0].Where()
}

// strayPeriod refuses a period that is not an argument of a function.
func strayPeriod(query string, c Command) error {
	var err error
	arguments := map[Expression]bool{}
	for _, e := range Expressions(c) {
		Walk(e, func(x Expression) bool {
			if call, ok := x.(*Call); ok {
				for _, argument := range call.Arguments {
					arguments[argument] = true
				}
			}
			if literal, ok := x.(*Literal); ok && literal.Period && !arguments[x] && err == nil {
				err = errorAt(query, literal.Span, "unexpected symbol found %s: a period is an argument of bin, datefloor and dateceil only", literal.Value)
			}
			return err == nil
		})
	}
	return err
}

// made returns the names that a command adds.
func made(c Command) []string {
	switch x := c.(type) {
	case *Fields:
		names := make([]string, len(x.Items))
		for i, item := range x.Items {
			names[i] = item.Name
		}
		return names
	case *Extract:
		return x.Names
	case *Unnest:
		return []string{x.As}
	default:
		return nil
	}
}

// knows refuses names that are not there after stats. AWS's message is the same.
func knows(query string, c Command, known []string) error {
	switch x := c.(type) {
	case *Fields: // each item knows those before it
		for _, item := range x.Items {
			if err := knowsAll(query, []Expression{item.Value}, known); err != nil {
				return err
			}
			known = append(known, item.Name)
		}
		return nil
	case *Stats: // statsNames looks at the rest
		all := values(x.By)
		for _, item := range x.Items {
			Walk(item.Value, func(e Expression) bool {
				aggregate, ok := e.(*Aggregate)
				if ok && aggregate.Argument != nil {
					all = append(all, aggregate.Argument)
				}
				return !ok
			})
		}
		return knowsAll(query, all, known)
	default:
		return knowsAll(query, Expressions(c), known)
	}
}

func knowsAll(query string, expressions []Expression, known []string) error {
	var err error
	for _, e := range expressions {
		Walk(e, func(x Expression) bool {
			switch y := x.(type) {
			case *Name:
				if err == nil && !isKnown(y, known) {
					err = unknown(query, y.Flat, y.Span)
				}
			case *Call:
				if err == nil && y.Name == "bin" { // it reads @timestamp
					err = unknown(query, "@timestamp", y.Span)
				}
			}
			return err == nil
		})
	}
	return err
}

func unknown(query, name string, at Span) error {
	return errorAt(query, at, "Unknown symbols found in or after stats: %s", name)
}

// isKnown reports whether a name, or a map or list that it is a member of, is known.
func isKnown(name *Name, known []string) bool {
	return slices.Contains(known, name.Flat) || slices.ContainsFunc(name.Holders(), func(holder string) bool { return slices.Contains(known, holder) })
}

// statsNames returns what a stats command makes. Outside aggregate functions its expressions may name only what it makes
// itself, such as the alias of an earlier aggregate.
func statsNames(query string, s *Stats) ([]string, error) {
	var names []string
	for _, item := range s.By {
		names = append(names, item.Name)
	}
	for _, item := range s.Items {
		var err error
		Walk(item.Value, func(x Expression) bool {
			if _, ok := x.(*Aggregate); ok {
				return false
			}
			if name, ok := x.(*Name); ok && err == nil && !isKnown(name, names) {
				err = unknown(query, name.Flat, name.Span)
			}
			return err == nil
		})
		if err != nil {
			return nil, err
		}
		names = append(names, item.Name)
	}
	return names, nil
}
