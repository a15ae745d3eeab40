// SPDX-License-Identifier: Apache-2.0

package prefilter

import (
	"regexp/syntax"
	"strings"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// translator knows which names the query made: they are not fields of the store.
type translator struct{ made map[string]bool }

func (t translator) make(item logsinsights.Item) {
	if name, ok := item.Value.(*logsinsights.Name); !ok || name.Flat != item.Name {
		t.made[item.Name] = true
	}
}

var (
	all     = Filter{Kind: All}
	nothing = Filter{Kind: Nothing}
)

// bounds returns a filter that passes at least the events that satisfy a condition, and one that passes at most these.
func (t translator) bounds(e logsinsights.Expression) (most, least Filter) {
	switch x := e.(type) {
	case *logsinsights.Unary:
		if x.Operator == "not" {
			most, least = t.bounds(x.Operand)
			return not(least), not(most)
		}
	case *logsinsights.Binary:
		return t.binary(x)
	case *logsinsights.Match:
		if field, ok := t.field(x.Operand); ok {
			return negateIf(x.Negated, match(field, x))
		}
	case *logsinsights.In:
		return t.in(x)
	case *logsinsights.Call:
		return t.call(x)
	}
	return all, nothing
}

type pair struct{ most, least Filter }

func negateIf(negated bool, p pair) (most, least Filter) {
	if negated {
		return not(p.least), not(p.most)
	}
	return p.most, p.least
}

// field returns the field of the store that an expression is. For the store a name that ends with * stands for all fields that
// begin so, also between quotes (newFilterGeneric in VictoriaLogs' lib/logstorage): such a field is left to the evaluation.
func (t translator) field(e logsinsights.Expression) (string, bool) {
	name, ok := e.(*logsinsights.Name)
	if !ok || t.made[name.Flat] || strings.HasSuffix(name.Flat, "*") {
		return "", false
	}
	for _, holder := range name.Holders() { // a map or list that the query made
		if t.made[holder] {
			return "", false
		}
	}
	return StoreField(name.Flat)
}

func (t translator) binary(x *logsinsights.Binary) (most, least Filter) {
	switch x.Operator {
	case "and", "or":
		leftMost, leftLeast := t.bounds(x.Left)
		rightMost, rightLeast := t.bounds(x.Right)
		if x.Operator == "and" {
			return and(leftMost, rightMost), and(leftLeast, rightLeast)
		}
		return or(leftMost, rightMost), or(leftLeast, rightLeast)
	case "=", "!=", "<", "<=", ">", ">=":
		field, ok := t.field(x.Left)
		literal, isLiteral := x.Right.(*logsinsights.Literal)
		if !ok || !isLiteral {
			field, ok = t.field(x.Right)
			literal, isLiteral = x.Left.(*logsinsights.Literal)
		}
		switch {
		case !ok || !isLiteral:
		case x.Operator == "=" || x.Operator == "!=":
			return negateIf(x.Operator == "!=", equal(field, literal.Value))
		case field != message:
			return Filter{Kind: Present, Field: field}, nothing
		}
	}
	return all, nothing
}

func (t translator) in(x *logsinsights.In) (most, least Filter) {
	field, ok := t.field(x.Operand)
	if !ok {
		return all, nothing
	}
	either := pair{nothing, nothing}
	for _, element := range x.List {
		one := pair{all, nothing}
		if literal, ok := element.(*logsinsights.Literal); ok {
			one = equal(field, literal.Value)
		}
		either = pair{or(either.most, one.most), or(either.least, one.least)}
	}
	return negateIf(x.Negated, either)
}

func (t translator) call(x *logsinsights.Call) (most, least Filter) {
	if x.Name != "ispresent" || len(x.Arguments) != 1 {
		return all, nothing
	}
	field, ok := t.field(x.Arguments[0])
	if !ok {
		return all, nothing
	}
	present := Filter{Kind: Present, Field: field}
	if field == message { // an event has a message, even an empty one
		return all, nothing
	}
	return present, present
}

// equal translates the comparison of a field with a literal.
func equal(field string, literal logvalue.Value) pair {
	text := literal.Plain()
	number, isNumber := literal.Number()
	if text == "" {
		if field == message {
			return pair{all, nothing}
		}
		return pair{nothing, nothing} // a missing field equals nothing
	}
	exact := Filter{Kind: Equal, Field: field, Text: text}
	if !isNumber {
		return pair{exact, exact}
	}
	most := []Filter{exact}
	if plain := logvalue.Number(number).String(); plain != text {
		most = append(most, Filter{Kind: Equal, Field: field, Text: plain})
	}
	most = append(most, Filter{Kind: Prefix, Field: field, Text: "0"})
	for _, spelled := range []string{".", "e", "E", "+", "-"} {
		most = append(most, Filter{Kind: Contains, Field: field, Text: spelled})
	}
	return pair{or(most...), exact}
}

// match translates like and =~. The empty text is a part of every text, but not of a missing field.
func match(field string, x *logsinsights.Match) pair {
	if x.Pattern != nil {
		return pattern(field, x.Pattern.String())
	}
	if x.Text == "" {
		present := Filter{Kind: Present, Field: field}
		if field == message {
			return pair{all, present}
		}
		return pair{present, present}
	}
	contains := Filter{Kind: Contains, Field: field, Text: x.Text}
	return pair{contains, contains}
}

// pattern translates a regular expression: texts that each match contains. An expression that is a text, or begins with ^ and
// is a text, is translated exactly.
func pattern(field, expression string) pair {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return pair{all, nothing}
	}
	parsed = parsed.Simplify()
	if text, anchored, ok := literalOf(parsed); ok {
		exact := Filter{Kind: Contains, Field: field, Text: text}
		if anchored {
			exact.Kind = Prefix
		}
		return pair{exact, exact}
	}
	return pair{required(field, parsed), nothing}
}

// literalOf returns the text that an expression is, and whether it must stand at the beginning.
func literalOf(e *syntax.Regexp) (text string, anchored, ok bool) {
	if e.Op == syntax.OpConcat && len(e.Sub) == 2 && e.Sub[0].Op == syntax.OpBeginText {
		anchored, e = true, e.Sub[1]
	}
	return string(e.Rune), anchored, isText(e)
}

// isText reports whether an expression is a text in that case. U+FFFD stands for bytes that are not UTF-8, too.
func isText(e *syntax.Regexp) bool {
	return e.Op == syntax.OpLiteral && e.Flags&syntax.FoldCase == 0 && !strings.ContainsRune(string(e.Rune), '\uFFFD')
}

// required returns a filter for the texts that every match of an expression contains. The expression is simplified: it has no
// counted repetitions.
func required(field string, e *syntax.Regexp) Filter {
	switch e.Op {
	case syntax.OpLiteral:
		if isText(e) {
			return Filter{Kind: Contains, Field: field, Text: string(e.Rune)}
		}
	case syntax.OpConcat:
		parts := make([]Filter, len(e.Sub))
		for i, sub := range e.Sub {
			parts[i] = required(field, sub)
		}
		return and(parts...)
	case syntax.OpAlternate:
		parts := make([]Filter, len(e.Sub))
		for i, sub := range e.Sub {
			parts[i] = required(field, sub)
		}
		return or(parts...)
	case syntax.OpCapture, syntax.OpPlus:
		return required(field, e.Sub[0])
	case syntax.OpNoMatch:
		return nothing
	default:
	}
	return all
}
