// SPDX-License-Identifier: Apache-2.0

package logsinsights

import (
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/aws/logsinsights/logfunction"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// reserved are words that are not names unless they stand in backquotes.
var reserved = []string{"and", "or", "not", "like", "in", "as", "by"}

// levels are the binary operators from the loosest to the tightest. Comparisons, like and in are tighter than these, and looser than +.
var levels = [][]string{{"or"}, {"and"}}

var (
	comparisons = []string{"=", "!=", "<", "<=", ">", ">="}
	sums        = []string{"+", "-"}
	products    = []string{"*", "/", "%"}
)

func (p *parser) expression() Expression {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.tok.Span, "unexpected symbol found: expressions may be nested %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	return p.logical(0)
}

func (p *parser) logical(level int) Expression {
	if level == len(levels) {
		return p.negation()
	}
	left := p.logical(level + 1)
	for p.isWord(levels[level]...) {
		operator := strings.ToLower(p.tok.text)
		p.advance()
		left = p.binary(operator, left, p.logical(level+1))
	}
	return left
}

func (p *parser) binary(operator string, left, right Expression) Expression {
	if p.err != nil {
		return nil
	}
	return &Binary{Operator: operator, Left: left, Right: right, Span: Span{left.Where().Start, p.last}}
}

func (p *parser) negation() Expression {
	start := p.tok.Start
	if !p.takeWord("not") {
		return p.comparison()
	}
	if p.depth++; p.depth > maxDepth {
		p.fail(p.tok.Span, "unexpected symbol found: expressions may be nested %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	return &Unary{Operator: "not", Operand: p.negation(), Span: Span{start, p.last}}
}

func (p *parser) comparison() Expression {
	left := p.sum()
	if p.err != nil {
		return nil
	}
	if p.tok.kind == symbolToken && slices.Contains(comparisons, p.tok.text) {
		operator := p.tok.text
		p.advance()
		return p.binary(operator, left, p.sum())
	}
	if p.takeSymbol("=~") {
		return p.match(left, false)
	}
	negated := p.isWord("not")
	if negated {
		p.advance()
	}
	switch {
	case p.takeWord("like"):
		return p.match(left, negated)
	case p.takeWord("in"):
		return p.in(left, negated)
	case negated:
		p.unexpected()
		return nil
	}
	return left
}

func (p *parser) match(left Expression, negated bool) Expression {
	m := &Match{Operand: left, Negated: negated}
	switch {
	case p.tok.kind == textToken:
		m.Text = p.tok.text
		p.advance()
	case p.isSymbol("/"):
		m.Pattern = p.regex()
	default:
		p.unexpected()
	}
	if p.err != nil {
		return nil
	}
	m.Span = Span{left.Where().Start, p.last}
	return m
}

func (p *parser) in(left Expression, negated bool) Expression {
	i := &In{Operand: left, Negated: negated}
	p.expectSymbol("[")
	for {
		i.List = append(i.List, p.sum())
		if !p.takeSymbol(",") {
			break
		}
	}
	p.expectSymbol("]")
	if p.err != nil {
		return nil
	}
	i.Span = Span{left.Where().Start, p.last}
	return i
}

func (p *parser) sum() Expression {
	return p.chain(sums, func() Expression { return p.chain(products, p.power) })
}

func (p *parser) chain(operators []string, operand func() Expression) Expression {
	left := operand()
	for p.tok.kind == symbolToken && slices.Contains(operators, p.tok.text) {
		operator := p.tok.text
		p.advance()
		left = p.binary(operator, left, operand())
	}
	return left
}

// power is right-associative: 2 ^ 3 ^ 2 is 2 ^ 9.
func (p *parser) power() Expression {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.tok.Span, "unexpected symbol found: expressions may be nested %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	start := p.tok.Start
	if p.takeSymbol("-") {
		return p.negative(start)
	}
	base := p.primary()
	if !p.takeSymbol("^") {
		return base
	}
	return p.binary("^", base, p.power())
}

// negative reads what a minus sign at start stands before.
func (p *parser) negative(start int) Expression {
	operand := p.power()
	at := Span{start, p.last}
	if literal, ok := operand.(*Literal); ok && literal.Value.Kind() == logvalue.KindNumber {
		return &Literal{Value: logvalue.Spelled(strings.Replace("-"+literal.Value.String(), "--", "", 1)), Span: at}
	}
	return &Unary{Operator: "-", Operand: operand, Span: at}
}

func (p *parser) primary() Expression {
	tok := p.tok
	switch {
	case tok.kind == textToken:
		p.advance()
		return &Literal{Value: logvalue.Text(tok.text), Span: tok.Span}
	case tok.kind == numberToken:
		p.advance()
		return &Literal{Value: logvalue.Spelled(tok.text), Span: tok.Span}
	case tok.kind == periodToken:
		p.advance()
		return &Literal{Value: logvalue.Text(tok.text), Period: true, Span: tok.Span}
	case p.takeSymbol("("):
		inner := p.expression()
		p.expectSymbol(")")
		return inner
	case tok.kind == nameToken && !p.isWord(reserved...):
		name := p.name()
		if p.isSymbol("(") && !tok.quoted {
			return p.call(tok)
		}
		if !tok.quoted && (strings.EqualFold(tok.text, "true") || strings.EqualFold(tok.text, "false")) {
			return &Literal{Value: logvalue.Bool(strings.EqualFold(tok.text, "true")), Span: tok.Span}
		}
		return name
	}
	p.unexpected()
	return nil
}

func (p *parser) name() *Name {
	n := &Name{Flat: p.tok.text, Segments: p.tok.segments, Span: p.tok.Span}
	p.advance()
	return n
}

// call reads the arguments of a function whose name was read.
func (p *parser) call(name token) Expression {
	p.expectSymbol("(")
	if isAggregate(name.text) {
		return p.aggregate(name)
	}
	function, found := logfunction.Find(name.text)
	if !found {
		p.fail(name.Span, "unexpected symbol found %s: there is no such function", name.text)
		return nil
	}
	c := &Call{Name: strings.ToLower(name.text), Function: function}
	for !p.isSymbol(")") {
		c.Arguments = append(c.Arguments, p.expression())
		if !p.takeSymbol(",") {
			break
		}
	}
	p.expectSymbol(")")
	if p.err != nil {
		return nil
	}
	c.Span = Span{name.Start, p.last}
	p.checkArguments(c)
	return c
}

func (p *parser) checkArguments(c *Call) {
	count, f := len(c.Arguments), c.Function
	if count < f.Least || f.Most >= 0 && count > f.Most {
		most := strconv.Itoa(f.Most)
		if f.Most < 0 {
			most = "any number"
		}
		p.fail(c.Span, "function %s has %d arguments: it takes from %d to %s", c.Name, count, f.Least, most)
		return
	}
	for i, argument := range c.Arguments {
		literal, ok := argument.(*Literal)
		isPeriod := ok && literal.Period
		if isPeriod != slices.Contains(f.Periods, i) {
			want := "not a period"
			if !isPeriod {
				want = "a period, such as 5m"
			}
			p.fail(argument.Where(), "argument %d of function %s must be %s", i+1, c.Name, want)
			return
		}
	}
}
