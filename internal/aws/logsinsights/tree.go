// SPDX-License-Identifier: Apache-2.0

package logsinsights

import (
	"regexp"
	"strings"

	"muster.dev/muster/internal/aws/logsinsights/logfunction"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// Query is a query that was read.
type Query struct {
	Commands []Command
}

// Command is one of *Fields, *Filter, *Extract, *Stats, *Sort, *Limit, *Dedup, *Pattern and *Unnest.
type Command interface{ command() }

// Fields computes values and names the columns of the result. Display forgets earlier columns.
type Fields struct {
	Items   []Item
	Display bool
}

// Item is an expression and the name of its value: the alias, or else the expression as it is written.
type Item struct {
	Value   Expression
	Name    string
	Aliased bool
	At      Span
}

// Filter keeps the rows for which its condition holds.
type Filter struct{ Condition Expression }

// Extract is the parse command: it takes parts of a text into fields. A row that Pattern does not match keeps its fields as they are.
type Extract struct {
	Source  Expression
	Pattern *regexp.Regexp // for a glob, the expression that it means
	Names   []string       // of the groups from 1 on; an empty name is not kept
}

// Stats aggregates rows by the values of By. Without By, all rows are one group.
type Stats struct {
	Items []Item
	By    []Item
}

// Sort orders rows by its keys, the first one first.
type Sort struct{ Keys []SortKey }

// SortKey is an expression to sort by.
type SortKey struct {
	Value      Expression
	Descending bool
}

// Limit keeps the first rows.
type Limit struct{ Count int }

// Dedup keeps the first row for each combination of values, and each row that lacks one of the fields.
type Dedup struct{ Fields []Expression }

// Pattern groups texts by their shared structure.
type Pattern struct{ Source Expression }

// Unnest makes a row of each element of a list.
type Unnest struct {
	Source Expression
	As     string
}

func (*Fields) command()  {}
func (*Filter) command()  {}
func (*Extract) command() {}
func (*Stats) command()   {}
func (*Sort) command()    {}
func (*Limit) command()   {}
func (*Dedup) command()   {}
func (*Pattern) command() {}
func (*Unnest) command()  {}

// Expression is one of *Name, *Literal, *Unary, *Binary, *Match, *In, *Call and *Aggregate.
type Expression interface{ Where() Span }

// Name is a field. Segments are the parts of Flat between dots and brackets, for values that are maps and lists.
type Name struct {
	Flat     string
	Segments []string
	Span
}

// Holders returns the names of the maps and lists that the field may be a member of, the outer ones first.
func (n *Name) Holders() []string {
	holders := make([]string, len(n.Segments)-1)
	for i := range holders {
		holders[i] = strings.Join(n.Segments[:i+1], ".")
	}
	return holders
}

// Literal is a text, a number, a boolean or a period such as 5m, which is a text.
type Literal struct {
	Value  logvalue.Value
	Period bool
	Span
}

// Unary is - or not.
type Unary struct {
	Operator string
	Operand  Expression
	Span
}

// Binary is one of + - * / % ^ = != < <= > >= and or.
type Binary struct {
	Operator    string
	Left, Right Expression
	Span
}

// Match is like or =~: Text is contained in the operand, or Pattern matches a part of it if Pattern is there.
type Match struct {
	Operand Expression
	Text    string
	Pattern *regexp.Regexp
	Negated bool
	Span
}

// In reports whether the operand equals an element of a list.
type In struct {
	Operand Expression
	List    []Expression
	Negated bool
	Span
}

// Call is a function with its arguments.
type Call struct {
	Name      string // in lower case
	Function  logfunction.Function
	Arguments []Expression
	Span
}

// Aggregate is a function of the rows of a group. count without an argument, or of *, has a nil Argument.
type Aggregate struct {
	Name     string // in lower case
	Argument Expression
	Percent  float64 // of pct, from 0 to 100
	Span
}

// Where returns the part of the query's text that an expression was read from.
func (s Span) Where() Span { return s }

// Walk calls visit for an expression and all that it is made of, outer ones first. It goes no deeper where visit returns false.
func Walk(e Expression, visit func(Expression) bool) {
	if e == nil || !visit(e) {
		return
	}
	switch x := e.(type) {
	case *Unary:
		Walk(x.Operand, visit)
	case *Binary:
		Walk(x.Left, visit)
		Walk(x.Right, visit)
	case *Match:
		Walk(x.Operand, visit)
	case *In:
		Walk(x.Operand, visit)
		for _, element := range x.List {
			Walk(element, visit)
		}
	case *Call:
		for _, argument := range x.Arguments {
			Walk(argument, visit)
		}
	case *Aggregate:
		Walk(x.Argument, visit)
	}
}

// Expressions returns the expressions of a command.
func Expressions(c Command) []Expression {
	switch x := c.(type) {
	case *Fields:
		return values(x.Items)
	case *Filter:
		return []Expression{x.Condition}
	case *Extract:
		return []Expression{x.Source}
	case *Stats:
		return append(values(x.By), values(x.Items)...)
	case *Sort:
		var all []Expression
		for _, key := range x.Keys {
			all = append(all, key.Value)
		}
		return all
	case *Dedup:
		return x.Fields
	case *Pattern:
		return []Expression{x.Source}
	case *Unnest:
		return []Expression{x.Source}
	default:
		return nil
	}
}

func values(items []Item) []Expression {
	all := make([]Expression, len(items))
	for i, item := range items {
		all[i] = item.Value
	}
	return all
}
