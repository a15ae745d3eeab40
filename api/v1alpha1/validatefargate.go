// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	namespacePattern = regexp.MustCompile(`^[a-z0-9*?]([-a-z0-9*?]*[a-z0-9*?])?$`)
	valuePattern     = regexp.MustCompile(`^[-A-Za-z0-9_.*?]*$`)
)

// FargateProfileSlug returns the name that a FargateProfile has in the namespace of its cluster, from spec.name, as
// [NodeGroupSlug] does.
func FargateProfileSlug(name string) string { return NodeGroupSlug(name) }

// ValidateFargateSelector returns what is wrong with a selector, "" if nothing is.
func ValidateFargateSelector(s FargateSelector) string {
	switch {
	case s.Namespace == "":
		return "it has no namespace: name one, or write * for all"
	case len(s.Namespace) > maxSlug || !namespacePattern.MatchString(s.Namespace):
		return fmt.Sprintf("its namespace %.80q cannot be that of a pod: write the name of a namespace, with * and ? for any characters and any one", s.Namespace)
	case len(s.Labels) > MaxFargateSelectors:
		return fmt.Sprintf("it has %d labels, and may have %d", len(s.Labels), MaxFargateSelectors)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		value := string(s.Labels[key])
		if len(validation.IsQualifiedName(key)) > 0 {
			return fmt.Sprintf("the key of its label %.320q cannot be one of a pod", key)
		}
		if len(value) > validation.LabelValueMaxLength || !valuePattern.MatchString(value) {
			return fmt.Sprintf("the value %.80q of its label %s cannot be one of a pod: write one, with * and ? for any characters and any one", value, key)
		}
	}
	return ""
}
