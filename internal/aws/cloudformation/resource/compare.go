// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Check names what is wrong with the names of properties: those that the type does not have, and required ones that are
// missing. The names are sorted.
func (t Type) Check(properties map[string]any) []string {
	var problems []string
	known := t.Properties()
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(known, name) {
			problems = append(problems, fmt.Sprintf("%s has no property %s: it has %s", t.Name, name, strings.Join(known, ", ")))
		}
	}
	for _, name := range t.Required {
		if _, ok := properties[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s needs the property %s", t.Name, name))
		}
	}
	return problems
}

// Changes are the paths of properties that differ between two sets of resolved properties, sorted; replaces reports whether
// one of them replaces the resource.
func (t Type) Changes(before, after map[string]any) (changed []string, replaces bool) {
	for _, path := range slices.Sorted(slices.Values(slices.Concat(t.Replaces, t.Updates))) {
		if !differs(path, before, after) {
			continue
		}
		changed = append(changed, path)
		if slices.Contains(t.Replaces, path) {
			replaces = true
		}
	}
	return changed, replaces
}

// differs reports whether the values at a path differ.
func differs(path string, before, after map[string]any) bool {
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		return !equal(before[name], after[name])
	}
	b, _ := before[name].(map[string]any)
	a, _ := after[name].(map[string]any)
	return differs(rest, b, a)
}

// equal compares two values as CloudFormation does: numbers and booleans are equal to their texts, as parameters are texts.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	left, one := scalar(a)
	right, two := scalar(b)
	if one && two {
		return left == right
	}
	return reflect.DeepEqual(a, b)
}
