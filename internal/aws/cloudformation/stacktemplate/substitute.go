// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"regexp"
	"strings"
)

// part is a piece of the text of Fn::Sub: literal text, or a variable.
type part struct {
	literal  string
	variable *call  // a Ref or Fn::GetAtt; nil for literal text
	local    string // the key of the map of variables that the part stands for; "" for all others
}

// variableName is what may stand between ${ and }.
var variableName = regexp.MustCompile(`^[A-Za-z0-9_.:]+$`)

// sub takes a text, or a text and a map of variables.
func (p *parser) sub(c *call, value any, at *path) {
	text, ok := value.(string)
	inside := at
	if list, isList := value.([]any); isList && len(list) == 2 {
		text, ok = list[0].(string)
		variables, isMap := list[1].(*object)
		ok = ok && isMap
		inside = at.index(0)
		if ok {
			c.vars = make(map[string]any, len(variables.keys))
			for _, key := range variables.keys {
				c.vars[key] = p.expression(variables.values[key], at.index(1).key(key))
				if !variableName.MatchString(key) {
					p.add(at.index(1).key(key), "a variable of %s has letters, digits, underscores, full stops and colons", fnSub)
				}
			}
		}
	}
	if !ok {
		p.wrong(c, at)
		return
	}
	if strings.Contains(text, dynamicReference) {
		p.add(inside, "dynamic references (%s…}}) are not supported: give the value by a parameter", dynamicReference)
	}
	var problem string
	if c.parts, problem = splitText(text, c.vars); problem != "" {
		p.add(inside, "%s", problem)
	}
}

// splitText splits the text of Fn::Sub at its variables. ${!Name} is the literal text ${Name}.
func splitText(text string, vars map[string]any) (parts []part, problem string) {
	var literal strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		literal.WriteString(before)
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, "${ has no }: write ${!name} for the literal text ${name}"
		}
		text = after
		if escaped, ok := strings.CutPrefix(name, "!"); ok {
			literal.WriteString("${" + escaped + "}")
			continue
		}
		if !variableName.MatchString(name) {
			return nil, "a variable has letters, digits, underscores, full stops and colons: write ${!name} for the literal text ${name}"
		}
		if literal.Len() > 0 {
			parts = append(parts, part{literal: literal.String()})
			literal.Reset()
		}
		parts = append(parts, variablePart(name, vars))
	}
	if literal.Len() > 0 {
		parts = append(parts, part{literal: literal.String()})
	}
	return parts, ""
}

// variablePart decides what a variable stands for: a key of the map, an attribute, or a parameter or resource.
func variablePart(name string, vars map[string]any) part {
	if _, ok := vars[name]; ok {
		return part{local: name}
	}
	if resource, attribute, ok := strings.Cut(name, "."); ok {
		return part{variable: &call{function: fnGetAtt, args: []any{resource, attribute}}}
	}
	return part{variable: &call{function: ref, args: []any{name}}}
}
