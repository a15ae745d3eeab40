// SPDX-License-Identifier: Apache-2.0

package logsinsights

import (
	"slices"
	"strings"
)

// aggregates are the functions of the stats command, in lower case.
var aggregates = []string{
	"count", "count_distinct", "sum", "avg", "min", "max", "stddev", "pct", "median", "earliest", "latest", "sortsfirst", "sortslast",
}

func isAggregate(name string) bool { return slices.Contains(aggregates, strings.ToLower(name)) }

// aggregate reads the arguments of an aggregate function whose parenthesis was read. Its argument is an expression of fields.
func (p *parser) aggregate(name token) Expression {
	if !p.inStats {
		p.fail(name.Span, "unexpected symbol found %s: this function belongs to the stats command", name.text)
		return nil
	}
	p.inStats = false
	defer func() { p.inStats = true }()
	a := &Aggregate{Name: strings.ToLower(name.text)}
	switch {
	case a.Name == "count" && (p.isSymbol(")") || p.takeSymbol("*")):
	case p.isSymbol(")"):
		p.fail(name.Span, "function %s has no argument: it takes one", a.Name)
	default:
		a.Argument = p.expression()
	}
	if a.Name == "pct" {
		a.Percent = p.percent()
	}
	p.expectSymbol(")")
	a.Span = Span{name.Start, p.last}
	return a
}

func (p *parser) percent() float64 {
	p.expectSymbol(",")
	at := p.tok.Span
	literal, ok := p.primary().(*Literal)
	if !ok {
		p.fail(at, "the second argument of pct must be a number from 0 to 100")
		return 0
	}
	percent, ok := literal.Value.Number()
	if !ok || percent < 0 || percent > 100 {
		p.fail(at, "the second argument of pct must be a number from 0 to 100")
	}
	return percent
}
