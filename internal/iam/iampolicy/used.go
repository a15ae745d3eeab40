// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"errors"
	"slices"
	"strings"
)

// Keys are the condition keys that a document's conditions and variables name, as they are written, sorted.
func (d Document) Keys() []string {
	var keys []string
	for _, s := range d.Statements {
		for _, c := range s.Conditions {
			keys = append(keys, c.Key)
			for _, text := range c.Values {
				keys = append(keys, d.variables(text)...)
			}
		}
		for _, text := range slices.Concat(s.Resources, s.NotResources) {
			keys = append(keys, d.variables(text)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// variables are the names in a text that was parsed.
func (d Document) variables(text string) []string {
	var names []string
	for d.Version == Version2012 {
		_, rest, ok := strings.Cut(text, "${")
		if !ok {
			break
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			break
		}
		text = after
		if name, _, _ = strings.Cut(name, ","); name != "*" && name != "?" && name != "$" {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// CheckAction checks the name of one action, such as iam:GetUser.
func CheckAction(name string) error {
	if _, err := parseAction(name); err != nil || strings.ContainsAny(name, "*?") {
		return errors.New("an action has the form service:Name, such as iam:GetUser, without wildcards")
	}
	return nil
}
