// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"maps"
	"slices"
)

// Change is one value of a resource that differs between two templates.
type Change struct {
	// Property is the name of the property that the value belongs to.
	Property string
	// Path leads from the properties to the value, such as Tags[0].Value. The middle of a very long path is left out.
	Path string
	// Before and After are evaluated values. Nil: the value does not exist. Unknown: it is known once a resource is made.
	Before, After any
}

// Action is what a new template does with a resource.
type Action string

// Actions, as DescribeChangeSet has them.
const (
	Add    Action = "Add"
	Modify Action = "Modify"
	Remove Action = "Remove"
)

// ResourceChange is a resource that differs between two templates.
type ResourceChange struct {
	LogicalID string
	Action    Action
	// Changes are sorted by path. Add and Remove have none.
	Changes []Change
}

// Compare returns the resources that differ, sorted by logical id. Both arguments are properties of the resources that are
// created, by logical id, as Rehearse returns them. Whether the type of a resource differs is the caller's to see.
func Compare(before, after map[string]map[string]any) []ResourceChange {
	ids := maps.Clone(before)
	if ids == nil {
		ids = map[string]map[string]any{}
	}
	maps.Copy(ids, after)
	var all []ResourceChange
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		old, was := before[id]
		properties, is := after[id]
		switch {
		case !was:
			all = append(all, ResourceChange{LogicalID: id, Action: Add})
		case !is:
			all = append(all, ResourceChange{LogicalID: id, Action: Remove})
		default:
			if changes := Diff(old, properties); len(changes) > 0 {
				all = append(all, ResourceChange{LogicalID: id, Action: Modify, Changes: changes})
			}
		}
	}
	return all
}

// Diff returns the values that differ between the evaluated properties of a resource, sorted by property. Scalars are
// compared by their texts. Lists of different lengths differ as a whole. Unknown differs from everything.
func Diff(before, after map[string]any) []Change {
	var all []Change
	var root *path
	for _, name := range keysOf(before, after) {
		differ(before[name], after[name], root.key(name), func(at *path, before, after any) {
			all = append(all, Change{Property: name, Path: at.String(), Before: before, After: after})
		})
	}
	return all
}

func differ(before, after any, at *path, changed func(at *path, before, after any)) {
	switch old := before.(type) {
	case map[string]any:
		if fields, ok := after.(map[string]any); ok {
			for _, key := range keysOf(old, fields) {
				differ(old[key], fields[key], at.key(key), changed)
			}
			return
		}
	case []any:
		if list, ok := after.([]any); ok && len(list) == len(old) {
			for i := range old {
				differ(old[i], list[i], at.index(i), changed)
			}
			return
		}
	}
	if !equal(before, after) {
		changed(at, before, after)
	}
}

// keysOf are the keys of both maps, sorted.
func keysOf(a, b map[string]any) []string {
	keys := make(map[string]bool, len(a)+len(b))
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}
