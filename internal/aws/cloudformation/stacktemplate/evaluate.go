// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"maps"
	"slices"
	"strings"
)

// Env is what a template is evaluated with.
type Env struct {
	// Parameters are values as Arguments and WithStored return them.
	Parameters map[string]any
	Pseudo     Pseudo
	// Zones are the names of the availability zones of the region, in their order.
	Zones []string
	// Imports returns the value of an export of the account by its name. Its error becomes part of a problem.
	Imports func(name string) (string, error)
	// Resource returns what Ref of a resource evaluates to, and its attributes by the names that Fn::GetAtt takes. Returns
	// false for a resource that does not exist yet. A nil function has no resources.
	Resource func(logicalID string) (ref string, attributes map[string]any, ok bool)
}

// Pseudo are the values of the pseudo parameters. Naming one that is empty is a problem, except for the list.
type Pseudo struct {
	Region           string
	AccountID        string
	Partition        string
	StackID          string
	StackName        string
	URLSuffix        string
	NotificationARNs []string
}

// evaluation is one use of an Env. It ends with its problems.
type evaluation struct {
	problems
	*Template
	env      Env
	verdicts map[string]verdict // of conditions that have been evaluated
	budget   int                // bytes that values may still take
	rehearse bool               // resources that do not exist are Unknown
	mask     bool               // values of parameters with NoEcho become hidden
}

// hidden stands for what nobody may be shown, as in AWS's answers.
const hidden = "****"

func (t *Template) evaluation(env Env) *evaluation {
	return &evaluation{Template: t, env: env, verdicts: map[string]verdict{}, budget: MaxValue}
}

// Created reports whether the condition of a resource holds, so that a stack has it. The error is an *Invalid.
func (t *Template) Created(env Env, logicalID string) (bool, error) {
	e := t.evaluation(env)
	created, _ := e.holds(t.Resources[logicalID].Condition, resourcePath(logicalID).key("Condition"))
	return created, e.err()
}

// Properties evaluates the properties of a resource. All resources that References names must exist. The error is an
// *Invalid with the path of each function that has no result.
func (t *Template) Properties(env Env, logicalID string) (map[string]any, error) {
	return t.evaluation(env).attribute(t.Resources[logicalID].properties, resourcePath(logicalID).key("Properties"))
}

// Shown evaluates the properties of a resource for people: a function that contains the value of a parameter with NoEcho
// has the result ****.
func (t *Template) Shown(env Env, logicalID string) (map[string]any, error) {
	e := t.evaluation(env)
	e.mask = true
	return e.attribute(t.Resources[logicalID].properties, resourcePath(logicalID).key("Properties"))
}

// Policies evaluates CreationPolicy and UpdatePolicy of a resource. A policy that the template does not have is empty.
func (t *Template) Policies(env Env, logicalID string) (creation, update map[string]any, err error) {
	at, e := resourcePath(logicalID), t.evaluation(env)
	if creation, err = e.attribute(t.Resources[logicalID].creationPolicy, at.key("CreationPolicy")); err != nil {
		return nil, nil, err
	}
	update, err = e.attribute(t.Resources[logicalID].updatePolicy, at.key("UpdatePolicy"))
	return creation, update, err
}

// ResourceMetadata evaluates the attribute Metadata of a resource for people, as Shown does its properties. Returns an empty map
// without it.
func (t *Template) ResourceMetadata(env Env, logicalID string) (map[string]any, error) {
	e := t.evaluation(env)
	e.mask = true
	return e.attribute(t.Resources[logicalID].metadata, resourcePath(logicalID).key("Metadata"))
}

func resourcePath(logicalID string) *path {
	var root *path
	return root.key("Resources").key(logicalID)
}

// attribute evaluates a map. The map is never nil without an error.
func (e *evaluation) attribute(fields map[string]any, at *path) (map[string]any, error) {
	value, _ := e.fields(fields, at)
	if err := e.err(); err != nil {
		return nil, err
	}
	return value, nil
}

// spend takes bytes from the budget. Returns false once it is used up, and reports that once.
func (e *evaluation) spend(bytes int, at *path) bool {
	if e.budget < 0 {
		return false
	}
	if e.budget -= bytes; e.budget < 0 {
		e.add(at, "the values become larger than %d bytes: make the text shorter, or repeat it less", MaxValue)
		return false
	}
	return true
}

// value evaluates an expression. Returns false if it has no result: the problem has been reported.
func (e *evaluation) value(expression any, at *path) (any, bool) {
	if !e.spend(cost, at) {
		return nil, false
	}
	switch expression := expression.(type) {
	case []any:
		return e.list(expression, at)
	case map[string]any:
		fields, ok := e.fields(expression, at)
		return fields, ok
	case *call:
		at = at.key(expression.function)
		if e.mask && expression.function != fnIf && e.secret(expression) {
			return hidden, true
		}
		result, ok := e.call(expression, at)
		if text, isText := result.(string); isText && ok {
			if strings.Contains(text, dynamicReference) {
				e.add(at, "dynamic references (%s…}}) are not supported: give the value by a parameter", dynamicReference)
				return nil, false
			}
		}
		if ok && expression.function != fnIf && expression.function != fnSelect { // these two pass on what was counted
			ok = e.spend(size(result), at)
		}
		return result, ok
	}
	return expression, true
}

func (e *evaluation) list(items []any, at *path) ([]any, bool) {
	list, all := make([]any, 0, len(items)), true
	for i, item := range items {
		value, ok := e.value(item, at.index(i))
		all = all && ok
		if _, none := value.(noValue); !none {
			list = append(list, value)
		}
	}
	return list, all
}

func (e *evaluation) fields(fields map[string]any, at *path) (map[string]any, bool) {
	result, all := make(map[string]any, len(fields)), true
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value, ok := e.value(fields[key], at.key(key))
		all = all && ok
		if _, none := value.(noValue); !none {
			result[key] = value
		}
	}
	return result, all
}

// call evaluates a function.
func (e *evaluation) call(c *call, at *path) (any, bool) {
	switch c.function {
	case ref:
		return e.ref(c.name(), at)
	case fnGetAtt:
		return e.getAtt(c, at)
	case fnIf:
		holds, ok := e.holds(c.name(), at)
		switch {
		case !ok:
			return nil, false
		case holds:
			return e.value(c.args[1], at.index(1))
		}
		return e.value(c.args[2], at.index(2))
	case fnSub:
		return e.sub(c, at)
	case fnBase64:
		return e.base64(c, at)
	case fnFindInMap:
		return e.findInMap(c, at)
	case fnGetAZs:
		return e.zones(c, at)
	case fnImport:
		return e.imported(c, at)
	case fnJoin:
		return e.join(c, at)
	case fnSplit:
		return e.split(c, at)
	case fnSelect:
		return e.selected(c, at)
	case fnCidr:
		return e.cidr(c, at)
	case fnLength:
		return e.length(c, at)
	case fnToJSON:
		return e.toJSON(c, at)
	}
	e.add(at, "%.60s has no value here", c.function)
	return nil, false
}

// text evaluates an argument that must be a text, a number or a boolean. Returns known false for a value that is not
// known before a resource is made.
func (e *evaluation) text(expression any, at *path) (text string, known, ok bool) {
	value, ok := e.value(expression, at)
	if !ok {
		return "", true, false
	}
	return e.asText(value, at)
}

// asText is the text of a value, or a problem.
func (e *evaluation) asText(value any, at *path) (text string, known, ok bool) {
	if _, unknown := value.(Unknown); unknown {
		return "", false, true
	}
	text, ok = textOf(value)
	if !ok {
		e.add(at, "a text is needed, and the value is %s", kind(value))
	}
	return text, true, ok
}

// listOf evaluates an argument that must be a list.
func (e *evaluation) listOf(expression any, at *path) (list []any, known, ok bool) {
	value, ok := e.value(expression, at)
	if !ok {
		return nil, true, false
	}
	if _, unknown := value.(Unknown); unknown {
		return nil, false, true
	}
	list, ok = value.([]any)
	if !ok {
		e.add(at, "a list is needed, and the value is %s", kind(value))
	}
	return list, true, ok
}

// quoted is a value for a problem, unless its expression contains what nobody may be shown.
func (e *evaluation) quoted(value string, expression any) string {
	if e.secret(expression) {
		return hidden
	}
	if len(value) > maxPath {
		value = strings.ToValidUTF8(value[:maxPath], "") + "…"
	}
	return `"` + value + `"`
}
