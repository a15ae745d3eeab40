// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/policy"
)

// reviewer answers as told and counts.
type reviewer struct {
	calls  atomic.Int32
	answer func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
}

func (r *reviewer) Create(ctx context.Context, s *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.calls.Add(1)
	status, err := r.answer(ctx, s.Spec)
	if err != nil {
		return nil, err
	}
	s = s.DeepCopy()
	s.Status = status
	return s, nil
}

func answering(allowed bool) *reviewer {
	return &reviewer{answer: func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}, nil
	}}
}

func access(t *testing.T, r Reviewer) *Access {
	t.Helper()
	a, err := NewAccess(AccessConfig{Reviewer: r})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func question() policy.Access {
	return policy.Access{
		Username: "system:node:a", UID: "u", Groups: []string{"system:nodes", "system:authenticated"},
		Extra: map[string][]string{"k": {"v", "w"}}, Subresource: "selfnodeserver",
	}
}

func TestReviewAsksAsUpstreamDoes(t *testing.T) {
	var got authorizationv1.SubjectAccessReviewSpec
	r := &reviewer{answer: func(_ context.Context, s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		got = s
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
	}}
	if f := access(t, r).Review(t.Context(), question()); f.State != policy.Known || !f.Value {
		t.Errorf("got %+v", f)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "system:node:a", UID: "u", Groups: []string{"system:nodes", "system:authenticated"},
		Extra: map[string]authorizationv1.ExtraValue{"k": {"v", "w"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Verb: "create", Subresource: "selfnodeserver", Version: "*",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReviewAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status authorizationv1.SubjectAccessReviewStatus
		err    error
		state  policy.State
		value  bool
	}{
		{"yes", authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil, policy.Known, true},
		{"no", authorizationv1.SubjectAccessReviewStatus{}, nil, policy.Known, false},
		{"yes and no", authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil, policy.Known, false},
		{"yes, though another authorizer failed", authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "x"}, nil, policy.Known, true},
		{"an authorizer failed", authorizationv1.SubjectAccessReviewStatus{EvaluationError: "x"}, nil, policy.Unknown, false},
		{"the API server failed", authorizationv1.SubjectAccessReviewStatus{}, errors.New("x"), policy.Unknown, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &reviewer{answer: func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
				return tc.status, tc.err
			}}
			a := access(t, r)
			f := a.Review(t.Context(), question())
			if f.State != tc.state || f.Value != tc.value {
				t.Errorf("got %+v", f)
			}
			a.Review(t.Context(), question())
			kept := r.calls.Load() == 1
			if kept != (tc.state == policy.Known) {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}

func TestAnswersAreKeptBriefly(t *testing.T) {
	for allowed, life := range map[bool]time.Duration{true: 10 * time.Second, false: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := answering(allowed)
			a := access(t, r)
			a.Review(t.Context(), question())
			elapse(life - time.Millisecond)
			a.Review(t.Context(), question())
			if n := r.calls.Load(); n != 1 {
				t.Errorf("%v: asked %d times within %s", allowed, n, life)
			}
			elapse(time.Millisecond)
			a.Review(t.Context(), question())
			if n := r.calls.Load(); n != 2 {
				t.Errorf("%v: asked %d times after %s", allowed, n, life)
			}
		})
	}
}

func TestOneIdentityIsOneReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{answer: func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			elapse(time.Second)
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
		}}
		a := access(t, r)
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if f := a.Review(impatient, question()); f.State != policy.Unknown {
				t.Errorf("the impatient one got %+v", f)
			}
		})
		synctest.Wait()
		for range 100 {
			group.Go(func() {
				if f := a.Review(t.Context(), question()); !f.Value {
					t.Errorf("got %+v", f)
				}
			})
		}
		group.Wait()
		if n := r.calls.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestEveryPartOfAnIdentityCounts(t *testing.T) {
	r := answering(true)
	a := access(t, r)
	for n, change := range []func(*policy.Access){
		func(*policy.Access) {},
		func(q *policy.Access) { q.Subresource = "selfnodeclient" },
		func(q *policy.Access) { q.Username = "system:node:b" },
		func(q *policy.Access) { q.UID = "" },
		func(q *policy.Access) { q.Groups = q.Groups[:1] },
		func(q *policy.Access) { q.Groups = []string{"system:nodes,system:authenticated"} },
		func(q *policy.Access) { q.Extra = nil },
		func(q *policy.Access) { q.Extra = map[string][]string{"k": {"v"}} },
		func(q *policy.Access) { q.Extra = map[string][]string{"k": {"v"}, "w": nil} },
	} {
		q := question()
		change(&q)
		a.Review(t.Context(), q)
		if got := int(r.calls.Load()); got != n+1 {
			t.Errorf("identity %d was taken for another", n)
		}
	}
}

func TestAReviewThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{answer: func(ctx context.Context, _ authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			<-ctx.Done()
			return authorizationv1.SubjectAccessReviewStatus{}, ctx.Err()
		}}
		if f := access(t, r).Review(t.Context(), question()); f.State != policy.Unknown {
			t.Errorf("got %+v", f)
		}
	})
}

func TestKeptAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := access(t, answering(true))
		for n := range 10 * minKept {
			q := question()
			q.Username = fmt.Sprint(n)
			a.Review(t.Context(), q)
			if n%minKept == 0 {
				elapse(11 * time.Second)
			}
		}
		if n := len(a.known); n > 2*minKept+1 {
			t.Errorf("%d answers are kept", n)
		}
	})
}
