// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/policy"
)

const accessSource = "SubjectAccessReview"

// Reviewer is the part of the API server that reviews access: clientset.AuthorizationV1().SubjectAccessReviews().
type Reviewer interface {
	Create(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// AccessConfig names the reviewer and how long answers are kept.
type AccessConfig struct {
	Reviewer Reviewer
	Allowed  time.Duration    // how long a yes is kept; 10 s if 0
	Refused  time.Duration    // how long a no is kept; 2 s if 0
	Timeout  time.Duration    // of one review; 10 s if 0
	Now      func() time.Time // time.Now if nil
	// PerIdentity asks about each identity, even if RBAC has just allowed the same to a group that it is in. It is
	// needed only where another authorizer, which is asked before RBAC, denies something to single members of such a
	// group.
	PerIdentity bool
}

// Access asks the API server what requesters may do. The answer for an identity is kept briefly, and callers that ask
// the same at the same time share one review, so a burst of one requester costs one. A permission that RBAC gives to a
// group is kept for the whole group, so a burst of many nodes costs few: RBAC only ever adds rights, and each member of
// a group has the rights of the group. A no is never shared, and not getting an answer is never kept.
type Access struct {
	config AccessConfig
	reason *regexp.Regexp
	flight singleflight.Group

	mu    sync.Mutex
	known map[string]policy.Fact[bool]
	limit int // when to throw old answers away
}

// NewAccess makes one.
func NewAccess(c AccessConfig) (*Access, error) {
	if c.Reviewer == nil {
		return nil, errors.New("access reviews need a reviewer")
	}
	if c.Allowed <= 0 {
		c.Allowed = 10 * time.Second
	}
	if c.Refused <= 0 {
		c.Refused = 2 * time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Access{config: c, reason: newReason(), known: map[string]policy.Fact[bool]{}, limit: minKept}, nil
}

const minKept = 1024

// Review answers whether the requester may do what is asked.
func (a *Access) Review(ctx context.Context, q policy.Access) policy.Fact[bool] {
	key := identity(q)
	if f, ok := a.recall(key); ok { // also its own no, before what others may
		return f
	}
	if f, ok := a.recallGroup(q); ok {
		return f
	}
	// The review belongs to all callers that wait for it, so it does not end when the first of them gives up.
	answer := a.flight.DoChan(key, func() (any, error) {
		if f, ok := a.recall(key); ok {
			return f, nil
		}
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.config.Timeout)
		defer cancel()
		f := a.ask(shared, q)
		a.keep(key, f)
		return f, nil
	})
	select {
	case r := <-answer:
		if f, ok := r.Val.(policy.Fact[bool]); ok {
			return f
		}
		return policy.DontKnow[bool](accessSource, "the review ended without an answer")
	case <-ctx.Done():
		return policy.DontKnow[bool](accessSource, ctx.Err().Error())
	}
}

func (a *Access) ask(ctx context.Context, q policy.Access) policy.Fact[bool] {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.Username, UID: q.UID, Groups: q.Groups,
		// As upstream asks (pkg/controller/certificates/approver/sarapprove.go, recognizers).
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: "certificates.k8s.io", Version: "*",
			Resource: "certificatesigningrequests", Subresource: q.Subresource,
		},
	}}
	if len(q.Extra) > 0 {
		review.Spec.Extra = make(map[string]authorizationv1.ExtraValue, len(q.Extra))
		for k, v := range q.Extra {
			review.Spec.Extra[k] = v
		}
	}
	at := a.config.Now()
	got, err := a.config.Reviewer.Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return policy.DontKnow[bool](accessSource, err.Error())
	case got.Status.EvaluationError != "" && !got.Status.Allowed: // an authorizer could not tell
		return policy.DontKnow[bool](accessSource, got.Status.EvaluationError)
	}
	if group := a.groupOf(got.Status); slices.Contains(q.Groups, group) {
		a.share(q.Subresource, group, at)
	}
	return policy.Know(got.Status.Allowed && !got.Status.Denied, accessSource, at)
}

func (a *Access) recall(key string) (policy.Fact[bool], bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, ok := a.known[key]
	return f, ok && !a.expired(f)
}

func (a *Access) expired(f policy.Fact[bool]) bool {
	life := a.config.Refused
	if f.Value {
		life = a.config.Allowed
	}
	return a.config.Now().Sub(f.At) >= life
}

func (a *Access) keep(key string, f policy.Fact[bool]) {
	if f.State != policy.Known {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= a.limit {
		for k, old := range a.known {
			if a.expired(old) {
				delete(a.known, k)
			}
		}
		a.limit = max(minKept, 2*len(a.known))
	}
	a.known[key] = f
}

// identity is all that an authorizer may look at, in one string that no two different questions share.
func identity(q policy.Access) string {
	var b strings.Builder
	add := func(parts ...string) {
		fmt.Fprintf(&b, "%d;", len(parts))
		for _, p := range parts {
			fmt.Fprintf(&b, "%d:%s;", len(p), p)
		}
	}
	add(q.Subresource, q.Username, q.UID)
	add(slices.Sorted(slices.Values(q.Groups))...)
	keys := make([]string, 0, len(q.Extra))
	for k := range q.Extra {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		add(k)
		add(q.Extra[k]...)
	}
	return b.String()
}
