// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/plane/component"
)

// Check refuses a list in which two specs have one name, or whose specs wait for a missing spec or for each other.
func Check(specs []component.Spec) error {
	done, names := map[string]bool{}, map[string]bool{}
	for _, spec := range specs {
		if names[spec.Name] {
			return fmt.Errorf("two specs are named %s: names must be unique", spec.Name)
		}
		names[spec.Name] = true
	}
	for range specs {
		for _, spec := range specs {
			if !slices.ContainsFunc(spec.After, func(name string) bool { return !done[name] }) {
				done[spec.Name] = true
			}
		}
	}
	for _, spec := range specs {
		if !done[spec.Name] {
			return fmt.Errorf("%s waits for %v, and one of them can never become ready", spec.Name, spec.After)
		}
	}
	return nil
}

// LastFirst groups specs that end: the specs of a group end at once, after all groups before it. A component ends
// before the components that it needs.
func LastFirst(specs []component.Spec) [][]component.Spec {
	var groups [][]component.Spec
	for left := slices.Clone(specs); len(left) > 0; {
		needed := map[string]bool{}
		for _, spec := range left {
			for _, name := range spec.After {
				needed[name] = true
			}
		}
		group := slices.DeleteFunc(slices.Clone(left), func(spec component.Spec) bool { return needed[spec.Name] })
		if len(group) == 0 { // a circle, which Check refuses
			group = slices.Clone(left)
		}
		groups = append(groups, group)
		left = slices.DeleteFunc(left, func(spec component.Spec) bool {
			return slices.ContainsFunc(group, func(other component.Spec) bool { return other.Name == spec.Name })
		})
	}
	return groups
}

// NotReady says of each named component that is not Ready what keeps it, or "" if all are Ready.
func NotReady(statuses []Status, names []string) string {
	var reasons []string
	for _, name := range names {
		at := slices.IndexFunc(statuses, func(s Status) bool { return s.Name == name })
		switch {
		case at < 0:
			reasons = append(reasons, name+" is not in the list of components")
		case statuses[at].State == Ready:
		case statuses[at].Message == "":
			reasons = append(reasons, name+" is "+string(statuses[at].State))
		default:
			reasons = append(reasons, name+" is "+string(statuses[at].State)+": "+statuses[at].Message)
		}
	}
	return strings.Join(reasons, "; ")
}
