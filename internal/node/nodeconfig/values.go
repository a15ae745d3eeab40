// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"cmp"
	"fmt"
	"slices"
)

// Value is one value of a merged NodeConfig, as it may be shown.
type Value struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
	From  string `json:"from"`
}

// Values are all values that the documents gave, by their paths as in Origins, without secrets.
func (m Merged) Values() ([]Value, error) {
	spec, err := m.Spec.Redacted()
	if err != nil {
		return nil, err
	}
	tree, err := treeOf(spec)
	if err != nil {
		return nil, fmt.Errorf("NodeConfig: %w", err)
	}
	if containerd, ok := tree["containerd"].(map[string]any); ok {
		delete(containerd, "config")
		if spec.Containerd.Config != "" {
			if containerd["config"], err = readTOML(spec.Containerd.Config); err != nil {
				return nil, err
			}
		}
	}
	var all []Value
	leaves(pathSpec, tree, func(path string, value any) {
		all = append(all, Value{Path: path, Value: value, From: m.Origins[path]})
	})
	slices.SortFunc(all, func(a, b Value) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

// leaves calls for each value that is not an object. Elements of flags are values each; other lists are one.
func leaves(path string, value any, each func(path string, value any)) {
	if object, ok := value.(map[string]any); ok && (len(object) > 0 || path == pathSpec || path == pathContainerd) {
		for key, inner := range object {
			leaves(child(path, key), inner, each)
		}
		return
	}
	if list, ok := value.([]any); ok && path == pathFlags {
		for i, inner := range list {
			each(fmt.Sprintf("%s[%d]", path, i), inner)
		}
		return
	}
	each(path, value)
}
