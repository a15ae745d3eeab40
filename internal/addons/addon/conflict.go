// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Conflict is a field of an object that another manager has set to another value than the add-on has.
type Conflict struct {
	// Object is as kubectl names it, such as Deployment.apps coredns.
	Object string
	// Field is its path, such as .spec.replicas.
	Field string
	// Manager is who has set it.
	Manager string
}

// String is the conflict as EKS tells of it, with the manager.
func (c Conflict) String() string {
	return fmt.Sprintf("%s - %s (set by %s)", c.Object, c.Field, c.Manager)
}

// managerPattern finds the manager in what the API server says of a conflict: structuredmerge.go of apimachinery's
// managedfields writes it.
var managerPattern = regexp.MustCompile(`^conflict with ("(?:[^"\\]|\\.)*")`)

// Conflicts reads the fields that are in conflict out of the API server's refusal of an apply.
func Conflicts(object *unstructured.Unstructured, err error) []Conflict {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsConflict(err) || status.Status().Details == nil {
		return nil
	}
	name := object.GetKind()
	if group := object.GroupVersionKind().Group; group != "" {
		name += "." + group
	}
	var found []Conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := "another manager"
		if parts := managerPattern.FindStringSubmatch(cause.Message); parts != nil {
			manager = strings.Trim(parts[1], `"`)
		}
		found = append(found, Conflict{Object: name + " " + object.GetName(), Field: cause.Field, Manager: manager})
	}
	return found
}

// Without removes fields from an object, so that applying it leaves them to their managers. A path that cannot be read
// is an error.
func Without(object *unstructured.Unstructured, conflicts []Conflict) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	for _, conflict := range conflicts {
		path, err := parsePath(conflict.Field)
		if err != nil {
			return nil, err
		}
		remove(object.Object, path)
	}
	return object, nil
}

// step is an element of a path: a field, or the item of a list with these keys or this value.
type step struct {
	field string
	keys  map[string]any
	value any // of a set's item
	isSet bool
}

// parsePath reads a path as structured-merge-diff writes it: .spec.containers[name="coredns",port=53].image,
// .metadata.finalizers["x"].
func parsePath(text string) ([]step, error) {
	var path []step
	wrong := func() ([]step, error) {
		return nil, fmt.Errorf("the path %.200q of a field is not one of the API server's", text)
	}
	for rest := text; rest != ""; {
		switch rest[0] {
		case '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			if end == 0 {
				return wrong()
			}
			path, rest = append(path, step{field: rest[1 : end+1]}), rest[end+1:]
		case '[':
			inside, after, ok := bracket(rest)
			if !ok {
				return wrong()
			}
			next, err := parseItem(inside)
			if err != nil {
				return wrong()
			}
			path, rest = append(path, next), after
		default:
			return wrong()
		}
	}
	if len(path) == 0 {
		return wrong()
	}
	return path, nil
}

// bracket cuts [inside] off, in which strings may have brackets.
func bracket(text string) (inside, after string, ok bool) {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ']' && !quoted:
			return text[1:i], text[i+1:], true
		}
	}
	return "", "", false
}

// keyPattern finds one key of an item with its value.
var keyPattern = regexp.MustCompile(`^([A-Za-z0-9_]+)=("(?:[^"\\]|\\.)*"|[^",]+)(?:,|$)`)

func parseItem(text string) (step, error) {
	keys := map[string]any{}
	for rest := text; rest != ""; {
		parts := keyPattern.FindStringSubmatch(rest)
		if parts == nil {
			var value any
			if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "=")), &value); err != nil {
				return step{}, err
			}
			return step{value: value, isSet: true}, nil
		}
		var value any
		if err := json.Unmarshal([]byte(parts[2]), &value); err != nil {
			return step{}, err
		}
		keys[parts[1]] = value
		rest = rest[len(parts[0]):]
	}
	if len(keys) == 0 {
		return step{}, fmt.Errorf("no keys in %q", text)
	}
	return step{keys: keys}, nil
}

// remove takes what a path leads to out of a value, and returns the value without it.
func remove(from any, path []step) any {
	first := path[0]
	if object, ok := from.(map[string]any); ok && first.field != "" {
		name, rest := first.field, path[1:]
		for { // a name with dots in it, as of a label, is written as it is
			if _, there := object[name]; there || len(rest) == 0 || rest[0].field == "" {
				break
			}
			name, rest = name+"."+rest[0].field, rest[1:]
		}
		child, there := object[name]
		switch {
		case !there:
		case len(rest) == 0:
			delete(object, name)
		default:
			object[name] = remove(child, rest)
		}
		return object
	}
	list, ok := from.([]any)
	if !ok || first.field != "" {
		return from
	}
	for i := range list {
		if !first.matches(list[i]) {
			continue
		}
		if len(path) == 1 {
			return slices.Delete(list, i, i+1)
		}
		list[i] = remove(list[i], path[1:])
		break
	}
	return list
}

func (s step) matches(item any) bool {
	if s.isSet {
		return fmt.Sprint(item) == fmt.Sprint(s.value)
	}
	object, ok := item.(map[string]any)
	for key, value := range s.keys {
		if !ok || fmt.Sprint(object[key]) != fmt.Sprint(value) {
			return false
		}
	}
	return ok
}
