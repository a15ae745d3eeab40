// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Unknown is a value that depends on a resource which is not made yet. Only Rehearse returns it.
type Unknown struct{}

// noValue is what AWS::NoValue evaluates to: the map or list around it leaves it out.
type noValue struct{}

// textOf is the text of a string, a number or a boolean: CloudFormation compares and joins these by their texts.
func textOf(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case json.Number:
		return value.String(), true
	case bool:
		return strconv.FormatBool(value), true
	}
	return "", false
}

// equal compares evaluated values; scalars by their texts, so that 80 and "80" are equal. Unknown equals nothing.
func equal(a, b any) bool {
	if text, ok := textOf(a); ok {
		other, ok := textOf(b)
		return ok && text == other
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	return false
}

// hasUnknown reports whether a value is Unknown or contains it.
func hasUnknown(value any) bool {
	switch value := value.(type) {
	case Unknown:
		return true
	case []any:
		return slices.ContainsFunc(value, hasUnknown)
	case map[string]any:
		for _, field := range value {
			if hasUnknown(field) {
				return true
			}
		}
	}
	return false
}

// size is how many bytes a value takes, beside its first interface.
func size(value any) int {
	total := 0
	switch value := value.(type) {
	case string:
		total = len(value)
	case []any:
		for _, item := range value {
			total += cost + size(item)
		}
	case map[string]any:
		for key, field := range value {
			total += 2*cost + len(key) + size(field)
		}
	}
	return total
}

// normal makes an evaluated value of an attribute, whose numbers and lists may be of other types of Go. Returns false for
// nil and for types that no template has.
func normal(value any) (any, bool) {
	switch value := value.(type) {
	case string, bool, json.Number:
		return value, true
	case int:
		return json.Number(strconv.Itoa(value)), true
	case int64:
		return json.Number(strconv.FormatInt(value, 10)), true
	case float64:
		return json.Number(strconv.FormatFloat(value, 'f', -1, 64)), true
	case []string:
		list := make([]any, 0, len(value))
		for _, item := range value {
			list = append(list, item)
		}
		return list, true
	case []any:
		list, all := make([]any, 0, len(value)), true
		for _, item := range value {
			item, ok := normal(item)
			list, all = append(list, item), all && ok
		}
		return list, all
	case map[string]any:
		fields, all := make(map[string]any, len(value)), true
		for key, field := range value {
			field, ok := normal(field)
			fields[key], all = field, all && ok
		}
		return fields, all
	}
	return nil, false
}

// kind is what a value is, for people.
func kind(value any) string {
	switch value.(type) {
	case string:
		return "a text"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	case noValue:
		return "AWS::NoValue"
	}
	return "a map"
}
