// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/platform/strictyaml"
)

// merger merges documents by the rules of nodeadm (amazon-eks-ami, nodeadm/internal/api/merge.go): fields that are
// empty never override; objects are merged, and in those that have no fields of their own, such as spec.kubelet.config,
// whatever is there overrides, false and 0 too; lists are replaced, but spec.kubelet.flags grows; TOML is merged as
// what it says.
type merger struct {
	tree    map[string]any
	origins map[string]string
	toml    []string // texts of spec.containerd.config
	config  map[string]any
}

// Where the rules are not the common ones.
const (
	pathSpec       = "spec"
	pathFlags      = "spec.kubelet.flags"
	pathContainerd = "spec.containerd.config"
)

func newMerger() *merger {
	return &merger{tree: map[string]any{}, origins: map[string]string{}, config: map[string]any{}}
}

// free reports whether the object at a path has no fields of its own.
func free(path string) bool {
	switch path {
	case "spec.kubelet.config", "spec.containerd.baseRuntimeSpec", "spec.instance.environment", "spec.featureGates", pathContainerd:
		return true
	}
	return false
}

// add merges one document in.
func (m *merger) add(name string, spec map[string]any) (problems []string) {
	if containerd, ok := spec["containerd"].(map[string]any); ok {
		if text, ok := containerd["config"].(string); ok {
			config, err := readTOML(text)
			if err != nil {
				return []string{fmt.Sprintf("%s: %v", pathContainerd, err)}
			}
			m.toml = append(m.toml, text)
			m.merge(name, pathContainerd, m.config, config, true)
			delete(containerd, "config")
			if len(containerd) == 0 {
				delete(spec, "containerd")
			}
		}
	}
	m.merge(name, pathSpec, m.tree, spec, false)
	return nil
}

func (m *merger) merge(name, path string, into, from map[string]any, anything bool) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		value, at := from[key], child(path, key)
		old, there := into[key]
		if !anything && there && empty(value) {
			continue
		}
		switch value := value.(type) {
		case map[string]any:
			object, ok := old.(map[string]any)
			if !ok {
				object = map[string]any{}
			}
			into[key] = object
			m.merge(name, at, object, value, anything || free(at))
			if len(object) == 0 {
				m.set(at, name)
			} else {
				delete(m.origins, at) // it was empty, or no object
			}
			continue
		case []any:
			if at == pathFlags {
				list, _ := old.([]any)
				into[key] = append(slices.Clip(list), unquoted(value)...)
				for i := range value {
					m.set(fmt.Sprintf("%s[%d]", at, len(list)+i), name)
				}
				continue
			}
		}
		m.forget(at)
		into[key] = value
		m.set(at, name)
	}
}

// quotes are what may stand around a flag.
const quotes = `"'`

// unquoted takes the quotes around a flag or its value off, as systemd does on EKS's nodes, which splits
// $NODEADM_KUBELET_ARGS: Karpenter writes --node-labels="a=b,c=d". Quotes inside of a value, as of JSON, are the value's.
func unquoted(flags []any) []any {
	plain := slices.Clone(flags)
	for i, element := range flags {
		text, _ := element.(string)
		name, value, found := strings.Cut(text, "=")
		if !found || strings.ContainsAny(name, quotes) {
			name, value = "", text
		} else {
			name += "="
		}
		if inner := len(value) - 1; inner > 0 && strings.IndexAny(value, quotes) == 0 && strings.IndexByte(value[1:], value[0]) == inner-1 {
			plain[i] = name + value[1:inner]
		}
	}
	return plain
}

func (m *merger) set(path, name string) { m.origins[path] = name }

// forget drops the origins of an object that something else replaces.
func (m *merger) forget(path string) {
	for known := range m.origins {
		if len(known) > len(path) && known[:len(path)] == path && (known[len(path)] == '.' || known[len(path)] == '[') {
			delete(m.origins, known)
		}
	}
}

func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	}
	return false // an object may have what is not empty; there are no numbers
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// child is the path of what an object has at a key.
func child(path, key string) string {
	if plainKey.MatchString(key) {
		return path + "." + key
	}
	return path + "[" + strconv.Quote(key) + "]"
}

// spec is what has been merged.
func (m *merger) spec() (Spec, error) {
	switch len(m.toml) {
	case 0:
	case 1: // as it was written, comments and all
		m.containerd()["config"] = m.toml[0]
	default:
		text, err := writeTOML(m.config)
		if err != nil {
			return Spec{}, fmt.Errorf("%s: %w", pathContainerd, err)
		}
		m.containerd()["config"] = text
	}
	raw, err := json.Marshal(m.tree)
	if err != nil {
		return Spec{}, err
	}
	var spec Spec
	if problems, _ := strictyaml.FromJSON(raw, &spec); problems != nil {
		return Spec{}, Problems(problems)
	}
	return spec, nil
}

func (m *merger) containerd() map[string]any {
	object, ok := m.tree["containerd"].(map[string]any)
	if !ok {
		object = map[string]any{}
		m.tree["containerd"] = object
	}
	return object
}
