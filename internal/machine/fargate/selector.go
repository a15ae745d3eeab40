// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"slices"

	"muster.dev/muster/api/v1alpha1"
)

// Chosen returns the profile that a pod of a namespace with some labels has a machine by; false if no profile selects it.
// Of several profiles the pod's label [v1alpha1.LabelFargateProfile] names one, and else the first by name counts.
// Profiles that are being deleted select nothing.
func Chosen(profiles []v1alpha1.FargateProfile, namespace string, labels map[string]string) (*v1alpha1.FargateProfile, bool) {
	var first *v1alpha1.FargateProfile
	for i := range profiles {
		p := &profiles[i]
		if !p.DeletionTimestamp.IsZero() || !Selects(p.Spec.Selectors, namespace, labels) {
			continue
		}
		if p.Spec.Name == labels[v1alpha1.LabelFargateProfile] {
			return p, true
		}
		if first == nil || p.Spec.Name < first.Spec.Name {
			first = p
		}
	}
	return first, first != nil
}

// Sorted returns the profiles that select pods, by name: those that are not being deleted.
func Sorted(profiles []v1alpha1.FargateProfile) []v1alpha1.FargateProfile {
	alive := slices.DeleteFunc(slices.Clone(profiles), func(p v1alpha1.FargateProfile) bool { return !p.DeletionTimestamp.IsZero() })
	slices.SortFunc(alive, func(a, b v1alpha1.FargateProfile) int { return cmp.Compare(a.Spec.Name, b.Spec.Name) })
	return alive
}

// Selects reports whether one of some selectors selects a pod: its namespace and all labels of the selector match.
func Selects(selectors []v1alpha1.FargateSelector, namespace string, labels map[string]string) bool {
	return slices.ContainsFunc(selectors, func(s v1alpha1.FargateSelector) bool {
		if !Match(s.Namespace, namespace) {
			return false
		}
		for key, pattern := range s.Labels {
			if value, there := labels[key]; !there || !Match(string(pattern), value) {
				return false
			}
		}
		return true
	})
}

// Match reports whether a text is of a pattern: * stands for any number of characters, ? for one.
func Match(pattern, text string) bool {
	p, t := 0, 0
	star, from := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0: // the star stands for one character more
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
