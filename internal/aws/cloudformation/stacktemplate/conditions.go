// SPDX-License-Identifier: Apache-2.0

package stacktemplate

// verdict is what became of a condition.
type verdict int

const (
	deciding verdict = iota + 1 // its expression is being evaluated
	failed                      // has no result: the problem has been reported
	no
	yes
)

// holds reports whether a condition is true, and false for ok where it has no result. The condition "" is true.
func (e *evaluation) holds(name string, at *path) (holds, ok bool) {
	if name == "" {
		return true, true
	}
	if e.verdicts[name] == 0 {
		expression, ok := e.conditions[name]
		if !ok {
			e.add(at, "the template has no condition %.100q", name)
			return false, false
		}
		e.verdicts[name] = deciding
		var root *path
		mask := e.mask
		e.mask = false // a condition has no value that anybody sees
		e.verdicts[name] = e.decide(expression, root.key("Conditions").key(name))
		e.mask = mask
	}
	if e.verdicts[name] == deciding {
		e.add(at, "the condition %s needs itself", name)
	}
	return e.verdicts[name] == yes, e.verdicts[name] == yes || e.verdicts[name] == no
}

// decide evaluates an expression of a condition.
func (e *evaluation) decide(expression any, at *path) verdict {
	c, ok := expression.(*call)
	if !ok {
		e.add(at, "the condition has no value")
		return failed
	}
	at = at.key(c.function)
	switch c.function {
	case condition:
		holds, ok := e.holds(c.name(), at)
		return verdictOf(holds, ok)
	case fnEquals:
		return e.equals(c, at)
	case fnNot:
		inner := e.decide(c.args[0], at.index(0))
		return verdictOf(inner == no, inner != failed)
	}
	all, some, ok := true, false, true
	for i, argument := range c.args {
		one := e.decide(argument, at.index(i))
		all, some, ok = all && one == yes, some || one == yes, ok && one != failed
	}
	return verdictOf(all || some && c.function == fnOr, ok)
}

func (e *evaluation) equals(c *call, at *path) verdict {
	left, leftOK := e.value(c.args[0], at.index(0))
	right, rightOK := e.value(c.args[1], at.index(1))
	if !leftOK || !rightOK {
		return failed
	}
	for i, value := range []any{left, right} {
		switch value.(type) {
		case noValue:
			e.add(at.index(i), "AWS::NoValue cannot be compared")
			return failed
		case Unknown:
			e.add(at.index(i), "the value is needed before resources are made")
			return failed
		}
	}
	return verdictOf(equal(left, right), true)
}

func verdictOf(holds, ok bool) verdict {
	switch {
	case !ok:
		return failed
	case holds:
		return yes
	}
	return no
}
