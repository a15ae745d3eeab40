// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"math"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/logfunction"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// scope is what an expression is computed of.
type scope struct {
	row        *row
	now        time.Time
	aggregates map[*logsinsights.Aggregate]logvalue.Value // of a group of stats
}

func (s scope) compute(e logsinsights.Expression) logvalue.Value {
	switch x := e.(type) {
	case *logsinsights.Name:
		return s.row.find(x)
	case *logsinsights.Literal:
		return x.Value
	case *logsinsights.Unary:
		return s.unary(x)
	case *logsinsights.Binary:
		return s.binary(x)
	case *logsinsights.Match:
		return logvalue.Bool(s.matches(x) != x.Negated)
	case *logsinsights.In:
		return logvalue.Bool(s.isIn(x) != x.Negated)
	case *logsinsights.Call:
		return s.call(x)
	case *logsinsights.Aggregate:
		return s.aggregates[x]
	default:
		return logvalue.Null()
	}
}

func (s scope) unary(x *logsinsights.Unary) logvalue.Value {
	value := s.compute(x.Operand)
	if x.Operator == "not" {
		return logvalue.Bool(!value.Truth())
	}
	number, ok := value.Number()
	if !ok {
		return logvalue.Null()
	}
	return logvalue.Number(-number)
}

func (s scope) binary(x *logsinsights.Binary) logvalue.Value {
	left := s.compute(x.Left)
	switch x.Operator {
	case "and":
		return logvalue.Bool(left.Truth() && s.compute(x.Right).Truth())
	case "or":
		return logvalue.Bool(left.Truth() || s.compute(x.Right).Truth())
	}
	right := s.compute(x.Right)
	switch x.Operator {
	case "=":
		return logvalue.Bool(logvalue.Equal(left, right))
	case "!=":
		return logvalue.Bool(!logvalue.Equal(left, right))
	case "<", "<=", ">", ">=":
		order, ok := logvalue.Compare(left, right)
		return logvalue.Bool(ok && ordered(x.Operator, order))
	default:
		return arithmetic(x.Operator, left, right)
	}
}

func ordered(operator string, order int) bool {
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func arithmetic(operator string, left, right logvalue.Value) logvalue.Value {
	a, isNumber := left.Number()
	b, bothNumbers := right.Number()
	if !isNumber || !bothNumbers {
		return logvalue.Null()
	}
	switch operator {
	case "+":
		return logvalue.Number(a + b)
	case "-":
		return logvalue.Number(a - b)
	case "*":
		return logvalue.Number(a * b)
	case "/":
		return logvalue.Number(a / b)
	case "%":
		return logvalue.Number(math.Mod(a, b))
	default:
		return logvalue.Number(math.Pow(a, b))
	}
}

func (s scope) matches(x *logsinsights.Match) bool {
	value := s.compute(x.Operand)
	switch {
	case value.IsNull():
		return false
	case x.Pattern != nil:
		return x.Pattern.MatchString(value.String())
	default:
		return strings.Contains(value.String(), x.Text)
	}
}

func (s scope) isIn(x *logsinsights.In) bool {
	value := s.compute(x.Operand)
	for _, element := range x.List {
		if logvalue.Equal(value, s.compute(element)) {
			return true
		}
	}
	return false
}

func (s scope) call(x *logsinsights.Call) logvalue.Value {
	arguments := make([]logvalue.Value, len(x.Arguments))
	for i, argument := range x.Arguments {
		arguments[i] = s.compute(argument)
	}
	context := logfunction.Context{Now: s.now}
	if x.Name == "bin" {
		if s.row.event == nil { // after stats there is no @timestamp
			return logvalue.Null()
		}
		context.Timestamp = s.row.event.Timestamp
	}
	return x.Function.Apply(context, arguments)
}
