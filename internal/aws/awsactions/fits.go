// SPDX-License-Identifier: Apache-2.0

package awsactions

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awstable"
)

var variable = regexp.MustCompile(`\\\$\\\{[A-Za-z]+\\\}`)

// Fits says why the list does not have IAM asked about an action, such as eks:DescribeCluster, and a resource: the
// resource is of no type of the action's. An action without types may be asked about with any, since "*" in a policy
// fits always. It is nil for those that fit.
func Fits(action, resource string) error {
	_, name, _ := strings.Cut(action, ":")
	for _, s := range Services() {
		i := slices.IndexFunc(s.Actions, func(a Action) bool { return a.Name == name })
		if i < 0 || awstable.Service(s.Name).PolicyAction(name) != action {
			continue
		}
		types := s.Actions[i].Resources
		if len(types) == 0 {
			return nil
		}
		for _, r := range s.Resources {
			pattern := "^" + variable.ReplaceAllString(regexp.QuoteMeta(r.ARN), ".*") + "$"
			if slices.Contains(types, r.Type) && regexp.MustCompile(pattern).MatchString(resource) {
				return nil
			}
		}
		return fmt.Errorf("%s is asked about with the resource %s, and the list has %v", action, resource, types)
	}
	return fmt.Errorf("%s is not on the list", action)
}
