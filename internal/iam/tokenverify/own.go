// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/sigv4"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/platform/lru"
)

// OwnConfig says what knows keys.
type OwnConfig struct {
	ClusterID string
	Keys      keyservice.Keys
	// Live reports whether changes are told now. While they are not, nothing is remembered; see keyservice.Client.Live.
	Live func() bool
	Gate GateConfig
	// Most is how many keys are remembered that made a good signature; 16384 if 0. A quarter of that for all others.
	Most int
	Now  func() time.Time // time.Now if nil
}

// Own verifies signatures itself.
type Own struct {
	config OwnConfig
	gate   *Gate

	mu      sync.Mutex
	changes uint64                    // how often something was forgotten
	keys    *lru.Map[question, known] // made a good signature
	unused  *lru.Map[question, known] // did not yet: an access key's id is not a secret, and anybody can name regions
	none    *lru.Map[question, refusal]
	asked   map[question]*asking
}

var _ Verifier = (*Own)(nil)

// question is what a derived key is remembered by.
type question struct {
	accessKeyID string
	scope       sigv4.Scope
	session     [sha256.Size]byte // of the session token; zero without
}

// known is a key that was told. The identity in it has no ValidUntil of a token yet.
type known struct {
	key sigv4.Key
	id  Identity
}

type refusal struct {
	err   *Refused
	until time.Time
}

// asking is a question on its way, which all callers with the same one wait for.
type asking struct {
	done    chan struct{}
	changes uint64 // when it was sent
	known   known
	err     error
}

// noneFor is how long a "no" of the identity service is remembered if nothing changes.
const noneFor = 10 * time.Second

// NewOwn makes a verifier.
func NewOwn(c OwnConfig) (*Own, error) {
	if c.ClusterID == "" || c.Keys == nil || c.Live == nil {
		return nil, errors.New("verifying signatures needs the cluster's ID, a source of keys and a report of their changes")
	}
	if c.Most <= 0 {
		c.Most = 16384
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Own{
		config: c, gate: NewGate(c.Gate), keys: lru.New[question, known](c.Most), unused: lru.New[question, known](c.Most / 4),
		none: lru.New[question, refusal](c.Most / 4), asked: map[question]*asking{},
	}, nil
}

// Verify checks the token's signature.
func (o *Own) Verify(ctx context.Context, t ststoken.Token) (Identity, error) {
	now := o.config.Now()
	if !now.Before(t.Expires) || t.Signed.SignedAt.After(now.Add(ststoken.MaxAhead)) { // it was right when it was read
		return Identity{}, &Refused{Rule: "date", Code: "RequestExpired", Saw: "a token that is not valid at this moment", Fix: fixOf("RequestExpired")}
	}
	q := question{accessKeyID: t.Signed.AccessKeyID, scope: t.Signed.Scope}
	if t.Signed.SessionToken != "" {
		q.session = sha256.Sum256([]byte(t.Signed.SessionToken))
	}
	k, proven, err := o.key(ctx, q, t.Signed.SessionToken, now)
	if err != nil {
		return Identity{}, err
	}
	if err := t.Signed.Verify(k.key, t.Request(o.config.ClusterID)); err != nil {
		return Identity{}, &Refused{
			Rule: "signature", Code: sigv4.CodeMismatch,
			Saw: fmt.Sprintf("a signature that key %s did not make for cluster %q", t.Signed.AccessKeyID, o.config.ClusterID),
			Fix: fixOf(sigv4.CodeMismatch),
		}
	}
	if !proven {
		o.prove(q)
	}
	if t.Expires.Before(k.id.ValidUntil) {
		k.id.ValidUntil = t.Expires
	}
	return k.id, nil
}

// prove keeps a key that made a good signature with the others that did, unless it was forgotten meanwhile.
func (o *Own) prove(q question) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k, ok := o.unused.Get(q); ok {
		o.unused.Delete(q)
		o.keys.Put(q, k)
	}
}

// Admit implements [Verifier].
func (o *Own) Admit(accessKeyID string) { o.gate.Admit(accessKeyID) }

// Admitted implements [Verifier].
func (o *Own) Admitted(accessKeyID string) bool { return o.gate.Admitted(accessKeyID) }

// key finds a key, here or by asking, and reports whether it made a good signature before.
func (o *Own) key(ctx context.Context, q question, sessionToken string, now time.Time) (k known, proven bool, err error) {
	live := o.config.Live()
	o.mu.Lock()
	if live {
		if k, ok := o.keys.Get(q); ok && now.Before(k.id.ValidUntil) {
			o.mu.Unlock()
			return k, true, nil
		}
		if k, ok := o.unused.Get(q); ok && now.Before(k.id.ValidUntil) {
			o.mu.Unlock()
			return k, false, nil
		}
		if no, ok := o.none.Get(q); ok && now.Before(no.until) {
			o.mu.Unlock()
			return known{}, false, no.err
		}
	}
	a := o.asked[q]
	if a == nil || a.changes != o.changes { // an older one may be answered by what is not true any more
		a = &asking{done: make(chan struct{}), changes: o.changes}
		o.asked[q] = a
		go o.ask(context.WithoutCancel(ctx), q, sessionToken, a)
	}
	o.mu.Unlock()
	select {
	case <-a.done:
		return a.known, false, a.err
	case <-ctx.Done():
		return known{}, false, &Unavailable{Asked: askedOwn, Err: ctx.Err()}
	}
}

const askedOwn = "the identity service"

// ask asks, and remembers the answer unless something changed meanwhile.
func (o *Own) ask(ctx context.Context, q question, sessionToken string, a *asking) {
	a.known, a.err = o.resolve(ctx, q, sessionToken)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked[q] == a {
		delete(o.asked, q)
	}
	if a.changes == o.changes {
		no, refused := errors.AsType[*Refused](a.err)
		switch {
		case a.err == nil:
			into := o.unused
			if _, ok := o.keys.Get(q); ok {
				into = o.keys
			}
			into.Put(q, a.known)
			o.none.Delete(q)
		case refused:
			o.keys.Delete(q)
			o.unused.Delete(q)
			o.none.Put(q, refusal{err: no, until: o.config.Now().Add(noneFor)})
		}
	}
	close(a.done)
}

func (o *Own) resolve(ctx context.Context, q question, sessionToken string) (known, error) {
	leave, err := o.gate.Enter(ctx, q.accessKeyID, true)
	if err != nil {
		return known{}, err
	}
	defer leave()
	r, err := o.config.Keys.Resolve(ctx, q.accessKeyID, sessionToken, q.scope)
	if no, ok := errors.AsType[*keyservice.Unknown](err); ok {
		return known{}, &Refused{Rule: "access-key", Code: clean(no.Code, maxCode), Saw: clean(no.Reason, maxMessage), Fix: fixOf(no.Code)}
	}
	if err != nil {
		return known{}, &Unavailable{Asked: askedOwn, Err: err}
	}
	userID := r.UserID
	if r.SessionName != "" {
		userID += ":" + r.SessionName
	}
	p, err := principalOf(r.ARN, r.Account, userID, q.accessKeyID)
	if err != nil {
		return known{}, &Unavailable{Asked: askedOwn, Err: err}
	}
	p.Instance = r.Instance
	return known{key: r.Key, id: Identity{Principal: p, ValidUntil: r.ValidUntil}}, nil
}

// Forget drops what a change is about. Questions on their way are not remembered.
func (o *Own) Forget(c keyservice.Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
	o.none.Clear()
	concerned := func(_ question, k known) bool { return Concerns(c, k.id) }
	for _, keys := range []*lru.Map[question, known]{o.keys, o.unused} {
		if c.All {
			keys.Clear()
		} else {
			keys.DeleteFunc(concerned)
		}
	}
}

// Concerns reports whether a change is about somebody.
func Concerns(c keyservice.Change, id Identity) bool {
	return c.All || slices.Contains(c.AccessKeyIDs, id.AccessKeyID) || slices.Contains(c.UserIDs, id.UserID) ||
		id.Instance != nil && slices.Contains(c.Instances, id.Instance.ID)
}
