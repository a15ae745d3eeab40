// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"muster.dev/muster/internal/certificates/policy"
)

const nodesReason = `RBAC: allowed by ClusterRoleBinding "eks:node-bootstrapper" of ClusterRole "eks:node-bootstrapper" to Group "system:nodes"`

func because(reason string) *reviewer {
	return &reviewer{answer: func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: reason}, nil
	}}
}

// another is a question of another requester.
func another(groups ...string) policy.Access {
	return policy.Access{Username: "system:node:b", Groups: groups, Subresource: "selfnodeserver"}
}

func TestWhatRBACAllowsToAGroupIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := because(nodesReason)
		a := access(t, r)
		a.Review(t.Context(), question())
		asked := time.Now()
		for n := range 1000 {
			q := another("system:authenticated", "system:nodes")
			q.Username = fmt.Sprint("system:node:", n)
			f := a.Review(t.Context(), q)
			if f.State != policy.Known || !f.Value || !f.At.Equal(asked) || f.Source != "SubjectAccessReview of group system:nodes" {
				t.Fatalf("got %+v", f)
			}
		}
		elapse(10*time.Second - time.Millisecond)
		a.Review(t.Context(), another("system:nodes"))
		if n := r.calls.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		elapse(time.Millisecond)
		a.Review(t.Context(), another("system:nodes"))
		if n := r.calls.Load(); n != 2 {
			t.Errorf("asked %d times after it was too old", n)
		}
	})
}

func TestAGroupsYesIsGoodForItsMembersAndTheSameQuestion(t *testing.T) {
	for name, q := range map[string]policy.Access{
		"in no group":           another(),
		"in another group":      another("system:authenticated", "system:nodes2", "system"),
		"another subresource":   {Username: "system:node:b", Groups: []string{"system:nodes"}, Subresource: "selfnodeclient"},
		"a group that looks so": another(`selfnodeserver""system:nodes`),
	} {
		r := because(nodesReason)
		a := access(t, r)
		a.Review(t.Context(), question())
		if a.Review(t.Context(), q); r.calls.Load() != 2 {
			t.Errorf("%s: the answer was shared", name)
		}
	}
}

func TestOnlyRBACsYesToAGroupIsShared(t *testing.T) {
	for _, reason := range []string{
		"",
		`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "system:nodes"`,
		`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to ServiceAccount "system:nodes/kube-system"`,
		`RBAC: allowed by RoleBinding "b/n" of ClusterRole "r" to Group "system:nodes"`,
		`RBAC: allowed by RoleBinding "b/n" of Role "r" to Group "system:nodes"`,
		`RBAC: allowed by ClusterRoleBinding "b" of Role "r" to Group "system:nodes"`,
		`allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "system:nodes"`,
		` ` + nodesReason, nodesReason + ` `, nodesReason + "\n", nodesReason + `, and more`, "webhook\n" + nodesReason,
		`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group system:nodes`,
		`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "system:nodes`,
		`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "\system:nodes"`,
		`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group ""`,
		`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "x\" of ClusterRole \"r\" to Group \"system:nodes"`,
		`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "x" to Group "system:nodes"`,
		`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "a group that the requester is not in"`,
		`RBAC: Allowed by ClusterRoleBinding "b" of ClusterRole "r" to group "system:nodes"`,
	} {
		r := because(reason)
		a := access(t, r)
		a.Review(t.Context(), question())
		a.Review(t.Context(), another("system:nodes", "a group that the requester is not in", ""))
		if r.calls.Load() != 2 {
			t.Errorf("shared because of %q", reason)
		}
	}
}

func TestNamesInReasonsAreQuoted(t *testing.T) {
	group := "a \"quoted\"\tgroup\\"
	r := because(fmt.Sprintf(`RBAC: allowed by ClusterRoleBinding %q of ClusterRole %q to Group %q`, `b" of`, `r\`, group))
	a := access(t, r)
	q := question()
	q.Groups = append(q.Groups, group)
	a.Review(t.Context(), q)
	if a.Review(t.Context(), another(group)); r.calls.Load() != 1 {
		t.Error("not shared")
	}
}

func TestWhatIsNotShared(t *testing.T) {
	answer := authorizationv1.SubjectAccessReviewStatus{Reason: nodesReason}
	r := &reviewer{answer: func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return answer, nil
	}}
	for name, tc := range map[string]struct {
		allowed, denied, perIdentity bool
		calls                        int32
	}{
		"a yes":                       {true, false, false, 1},
		"a no":                        {false, false, false, 2},
		"a yes and a no":              {true, true, false, 2},
		"a yes where it is not to be": {true, false, true, 2},
	} {
		answer.Allowed, answer.Denied = tc.allowed, tc.denied
		r.calls.Store(0)
		a, err := NewAccess(AccessConfig{Reviewer: r, PerIdentity: tc.perIdentity})
		if err != nil {
			t.Fatal(err)
		}
		a.Review(t.Context(), question())
		a.Review(t.Context(), another("system:nodes"))
		if n := r.calls.Load(); n != tc.calls {
			t.Errorf("%s: asked %d times, want %d", name, n, tc.calls)
		}
	}
}

// Another authorizer may deny something to one member of a group.
func TestAnIdentitysOwnNoCountsBeforeItsGroupsYes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{answer: func(_ context.Context, s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			if s.User == "system:node:b" {
				return authorizationv1.SubjectAccessReviewStatus{Denied: true}, nil
			}
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: nodesReason}, nil
		}}
		a := access(t, r)
		a.Review(t.Context(), another("system:nodes"))
		a.Review(t.Context(), question())
		if f := a.Review(t.Context(), another("system:nodes")); f.State != policy.Known || f.Value {
			t.Errorf("got %+v", f)
		}
	})
}
