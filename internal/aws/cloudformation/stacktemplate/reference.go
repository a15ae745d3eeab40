// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"maps"
	"slices"
	"strings"
)

// pseudoParameters are names that Ref and Fn::Sub take beside parameters and resources.
var pseudoParameters = []string{
	"AWS::AccountId", "AWS::NoValue", "AWS::NotificationARNs", "AWS::Partition", "AWS::Region", "AWS::StackId", "AWS::StackName", "AWS::URLSuffix",
}

// walk visits all functions of an expression in an order that depends on the template alone. A visit returns whether the
// arguments are to be visited, too.
func walk(value any, at *path, visit func(c *call, at *path) bool) {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			walk(item, at.index(i), visit)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			walk(value[key], at.key(key), visit)
		}
	case *call:
		at = at.key(value.function)
		if !visit(value, at) {
			return
		}
		for _, part := range value.parts {
			if part.variable != nil {
				visit(part.variable, at)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(value.vars)) {
			walk(value.vars[key], at.index(1).key(key), visit)
		}
		for i, argument := range value.args {
			walk(argument, at.index(i), visit)
		}
	}
}

// attributes are all expressions of a resource, with the name of the attribute that each belongs to.
func (r *Resource) attributes() map[string]map[string]any {
	return map[string]map[string]any{
		"Properties": r.properties, "CreationPolicy": r.creationPolicy, "UpdatePolicy": r.updatePolicy, "Metadata": r.metadata,
	}
}

// walkResource visits all functions of a resource.
func (t *Template) walkResource(id string, visit func(c *call, at *path) bool) {
	r := t.Resources[id]
	var root *path
	at := root.key("Resources").key(id)
	attributes := r.attributes()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		walk(attributes[name], at.key(name), visit)
	}
}

func (t *Template) isResource(name string) bool {
	_, ok := t.Resources[name]
	return ok
}

// References returns the logical ids of all resources that a resource names, sorted: by Ref, Fn::GetAtt, Fn::Sub and
// DependsOn, in both branches of Fn::If. A resource that is not made, since its condition is false, is among them.
func (t *Template) References(id string) []string {
	found := map[string]bool{}
	for _, name := range t.Resources[id].DependsOn {
		found[name] = t.isResource(name)
	}
	t.walkResource(id, func(c *call, _ *path) bool {
		if c.function == ref || c.function == fnGetAtt {
			found[c.name()] = t.isResource(c.name())
		}
		return true
	})
	maps.DeleteFunc(found, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(found))
}

// Order returns the logical ids of all resources, each behind those that it refers to. The order depends on the template
// alone. The error is an *Invalid that names a cycle.
func (t *Template) Order() ([]string, error) {
	v := visitor{needs: t.References, state: map[string]int{}}
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		if !v.visit(id) {
			var p problems
			p.add(nil, "the resources need each other in a circle: %s", strings.Join(v.stack, " needs "))
			return nil, p.err()
		}
	}
	return v.order, nil
}

// visitor sorts names so that each is behind all that it needs.
type visitor struct {
	needs func(name string) []string
	order []string
	state map[string]int
	stack []string // the names that are being visited; after a cycle, the cycle with its first name at both ends
}

const (
	visiting = iota + 1
	visited
)

// visit returns false for a cycle.
func (v *visitor) visit(name string) bool {
	switch v.state[name] {
	case visited:
		return true
	case visiting:
		v.stack = append(v.stack[slices.Index(v.stack, name):], name)
		return false
	}
	v.state[name], v.stack = visiting, append(v.stack, name)
	for _, needed := range v.needs(name) {
		if !v.visit(needed) {
			return false
		}
	}
	v.state[name], v.stack = visited, v.stack[:len(v.stack)-1]
	v.order = append(v.order, name)
	return true
}

// secret reports whether an expression contains the value of a parameter that nobody may be shown.
func (t *Template) secret(value any) bool {
	found := false
	walk(value, nil, func(c *call, _ *path) bool {
		found = found || c.function == ref && t.noEcho[c.name()]
		return !found
	})
	return found
}
