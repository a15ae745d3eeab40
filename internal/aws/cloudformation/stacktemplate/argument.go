// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Arguments makes values of all parameters: the given texts, or the defaults. A value is a string, or an []any of strings
// for a list. The error is an *Invalid with a problem for each parameter that is missing, unknown or not allowed.
//
// The value of a parameter that is Stored is the name of a parameter of Systems Manager, until WithStored.
func (t *Template) Arguments(given map[string]string) (map[string]any, error) {
	var p problems
	var root *path
	section := root.key("Parameters")
	values := make(map[string]any, len(t.Parameters))
	known := make(map[string]bool, len(t.Parameters))
	for i := range t.Parameters {
		parameter := &t.Parameters[i]
		known[parameter.Name] = true
		text, ok := given[parameter.Name]
		if !ok && parameter.Default == nil {
			p.add(section.key(parameter.Name), "the parameter has no default: give a value")
			continue
		}
		if !ok {
			text = *parameter.Default
		}
		if parameter.Stored() {
			values[parameter.Name] = text
			continue
		}
		for _, problem := range parameter.violations(text) {
			p.add(section.key(parameter.Name), "%s", problem)
		}
		values[parameter.Name] = parameter.typed(text)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			p.add(section.key(name), "the template has no such parameter")
		}
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return values, nil
}

// Stored returns the names of parameters of Systems Manager that the arguments ask for, by parameter of the template.
func (t *Template) Stored(arguments map[string]any) map[string]string {
	names := map[string]string{}
	for i := range t.Parameters {
		if name, ok := arguments[t.Parameters[i].Name].(string); ok && t.Parameters[i].Stored() {
			names[t.Parameters[i].Name] = name
		}
	}
	return names
}

// WithStored returns the arguments with the values that Systems Manager has for the names of Stored, by parameter of the
// template. Constraints of the parameters are about these values. The error is an *Invalid.
func (t *Template) WithStored(arguments map[string]any, stored map[string]string) (map[string]any, error) {
	var p problems
	var root *path
	values := maps.Clone(arguments)
	for i := range t.Parameters {
		parameter := &t.Parameters[i]
		if !parameter.Stored() {
			continue
		}
		at := root.key("Parameters").key(parameter.Name)
		text, ok := stored[parameter.Name]
		if !ok {
			p.add(at, "Systems Manager has no such parameter")
			continue
		}
		for _, problem := range parameter.violations(text) {
			p.add(at, "%s", problem)
		}
		values[parameter.Name] = parameter.typed(text)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return values, nil
}

// typed is the value of a text.
func (p *Parameter) typed(text string) any {
	if !p.isList() {
		return text
	}
	list := []any{}
	for _, item := range p.items(text) {
		list = append(list, item)
	}
	return list
}

// items are the members of a list, or the text alone. Space around a member does not belong to it.
func (p *Parameter) items(text string) []string {
	if !p.isList() {
		return []string{text}
	}
	items := strings.Split(text, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// violations are the rules that a value breaks. They quote the value, unless nobody may be shown it.
func (p *Parameter) violations(text string) []string {
	if len(text) > MaxParameterValue {
		return []string{fmt.Sprintf("the value has %d bytes: at most %d", len(text), MaxParameterValue)}
	}
	var broken []string
	for _, item := range p.items(text) {
		shown := fmt.Sprintf("%.100q", item)
		if p.NoEcho {
			shown = "the value"
		}
		for _, rule := range p.rules(item) {
			broken = append(broken, shown+" "+rule)
		}
		if len(broken) >= maxProblems {
			break
		}
	}
	if len(broken) > 0 && p.ConstraintDescription != "" {
		broken = append(broken, fmt.Sprintf("constraint: %.500s", p.ConstraintDescription))
	}
	return broken
}

// rules are the rules that a value or a member of a list breaks.
func (p *Parameter) rules(item string) []string {
	var broken []string
	add := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	if len(p.AllowedValues) > 0 && !slices.Contains(p.AllowedValues, item) {
		add("is not one of %.500s", strings.Join(p.AllowedValues, ", "))
	}
	if p.pattern != nil && !p.pattern.MatchString(item) {
		add("does not match the pattern %.200s", p.AllowedPattern)
	}
	length := utf8.RuneCountInString(item)
	if p.MinLength != nil && length < *p.MinLength {
		add("is shorter than %d characters", *p.MinLength)
	}
	if p.MaxLength != nil && length > *p.MaxLength {
		add("is longer than %d characters", *p.MaxLength)
	}
	if !p.isNumber() {
		return broken
	}
	n, ok := parseNumber(item)
	switch {
	case !ok:
		add("is not a number")
	case p.MinValue != nil && n < *p.MinValue:
		add("is less than %v", *p.MinValue)
	case p.MaxValue != nil && n > *p.MaxValue:
		add("is greater than %v", *p.MaxValue)
	}
	return broken
}
