// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"regexp"
	"strconv"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"muster.dev/muster/internal/certificates/policy"
)

// RBAC's reason when it allows something that is in no namespace, where RoleBindings count for nothing (upstream's
// plugin/pkg/auth/authorizer/rbac/rbac.go and pkg/registry/rbac/validation/rule.go). Names are quoted as in Go, so
// nothing in a name can look like the words around it.
const groupReason = `^RBAC: allowed by ClusterRoleBinding "(?:[^"\\]|\\.)+" of ClusterRole "(?:[^"\\]|\\.)+" to Group ("(?:[^"\\]|\\.)+")$`

// groupOf returns the group to which RBAC gave the right, "" if it was not RBAC or not a group.
func (a *Access) groupOf(status authorizationv1.SubjectAccessReviewStatus) string {
	if a.config.PerIdentity || !status.Allowed || status.Denied {
		return ""
	}
	found := a.reason.FindStringSubmatch(status.Reason)
	if found == nil {
		return ""
	}
	group, err := strconv.Unquote(found[1])
	if err != nil {
		return ""
	}
	return group
}

// share keeps a yes for all members of the group.
func (a *Access) share(subresource, group string, at time.Time) {
	if group == "" {
		return
	}
	a.keep(groupKey(subresource, group), policy.Know(true, accessSource+" of group "+group, at))
}

// recallGroup finds the yes that another member of one of the requester's groups got.
func (a *Access) recallGroup(q policy.Access) (policy.Fact[bool], bool) {
	if a.config.PerIdentity {
		return policy.Fact[bool]{}, false
	}
	for _, g := range q.Groups {
		if f, ok := a.recall(groupKey(q.Subresource, g)); ok {
			return f, true
		}
	}
	return policy.Fact[bool]{}, false
}

// groupKey is like no identity, which begins with a number.
func groupKey(subresource, group string) string {
	return "group;" + strconv.Quote(subresource) + strconv.Quote(group)
}

func newReason() *regexp.Regexp { return regexp.MustCompile(groupReason) }
