// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/platform/lru"
)

// OwnConfig is what a verifier of the account's tokens needs.
type OwnConfig struct {
	ClusterID string
	Account   keyservice.Verifier
	// Live reports whether changes are told now. While they are not, no refusal is remembered; see
	// keyservice.Client.Live.
	Live func() bool
	Gate GateConfig
	Now  func() time.Time // time.Now if nil
}

// Own asks muster's own account about each token. It holds no key, and does not remember makers of tokens: its caller
// does.
type Own struct {
	config OwnConfig
	gate   *Gate

	mu      sync.Mutex
	changes uint64 // how often something was forgotten
	none    *lru.Map[holder, refusal]
}

var _ Verifier = (*Own)(nil)

// holder is an access key and session as a token names them: a "no" about these is the same whatever is signed.
type holder struct {
	accessKeyID string
	session     [sha256.Size]byte // of the session token; zero without
}

type refusal struct {
	err   *Refused
	until time.Time
}

const (
	// noneFor is how long a "no" of the account about an access key is remembered if nothing changes, and mostNone how
	// many are.
	noneFor  = 10 * time.Second
	mostNone = 4096
	// ruleKey is of refusals that are about the access key.
	ruleKey = "access-key"
)

// NewOwn makes a verifier.
func NewOwn(c OwnConfig) (*Own, error) {
	if c.ClusterID == "" || c.Account == nil || c.Live == nil {
		return nil, errors.New("verifying tokens of the account needs the cluster's ID, the account and a report of changes")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Own{config: c, gate: NewGate(c.Gate), none: lru.New[holder, refusal](mostNone)}, nil
}

// Verify asks the account.
func (o *Own) Verify(ctx context.Context, t ststoken.Token) (Identity, error) {
	now := o.config.Now()
	if !now.Before(t.Expires) || t.Signed.SignedAt.After(now.Add(ststoken.MaxAhead)) { // it was right when it was read
		return Identity{}, &Refused{Rule: "date", Code: "RequestExpired", Saw: "a token that is not valid at this moment", Fix: fixOf("RequestExpired")}
	}
	h := holder{accessKeyID: t.Signed.AccessKeyID}
	if t.Signed.SessionToken != "" {
		h.session = sha256.Sum256([]byte(t.Signed.SessionToken))
	}
	no, changes := o.remembered(h, now)
	if no != nil {
		return Identity{}, no
	}
	id, err := o.ask(ctx, t)
	if no, ok := errors.AsType[*Refused](err); ok && no.Rule == ruleKey {
		o.remember(h, no, changes)
	}
	return id, err
}

// remembered returns the refusal of an access key that is remembered, and the number of changes until now.
func (o *Own) remembered(h holder, now time.Time) (no *Refused, changes uint64) {
	live := o.config.Live()
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.none.Get(h); live && ok && now.Before(r.until) {
		return r.err, o.changes
	}
	return nil, o.changes
}

// remember keeps a "no", unless something changed since it was asked for.
func (o *Own) remember(h holder, no *Refused, changes uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if changes == o.changes {
		o.none.Put(h, refusal{err: no, until: o.config.Now().Add(noneFor)})
	}
}

const askedOwn = "the identity service"

func (o *Own) ask(ctx context.Context, t ststoken.Token) (Identity, error) {
	leave, err := o.gate.Enter(ctx, t.Signed.AccessKeyID, true)
	if err != nil {
		return Identity{}, err
	}
	defer leave()
	m, err := o.config.Account.Verify(ctx, keyservice.Question{Cluster: o.config.ClusterID, Host: t.Host, Query: t.Query})
	if no, ok := errors.AsType[*keyservice.Unknown](err); ok {
		return Identity{}, &Refused{
			Rule: cmp.Or(clean(no.Rule, maxCode), ruleKey), Code: clean(no.Code, maxCode), Saw: clean(no.Reason, maxMessage),
			Fix: cmp.Or(clean(no.Fix, maxMessage), fixOf(no.Code)),
		}
	}
	if err != nil {
		return Identity{}, &Unavailable{Asked: askedOwn, Err: err}
	}
	userID := m.UserID
	if m.SessionName != "" {
		userID += ":" + m.SessionName
	}
	p, err := principalOf(m.ARN, m.Account, userID, t.Signed.AccessKeyID)
	if err != nil {
		return Identity{}, &Unavailable{Asked: askedOwn, Err: err}
	}
	p.Instance, p.Machine = m.Instance, m.Machine
	until := m.ValidUntil
	if t.Expires.Before(until) {
		until = t.Expires
	}
	// While the account is away, its answer about this token holds until the same moment, unless something changed;
	// Live reports whether changes are heard.
	return Identity{Principal: p, ValidUntil: until, OutageUntil: until}, nil
}

// Admit implements [Verifier].
func (o *Own) Admit(accessKeyID string) { o.gate.Admit(accessKeyID) }

// Admitted implements [Verifier].
func (o *Own) Admitted(accessKeyID string) bool { return o.gate.Admitted(accessKeyID) }

// Forget drops all remembered refusals, since the change may have outdated them. Refusals of questions that are under
// way are not remembered either.
func (o *Own) Forget(keyservice.Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
	o.none.Clear()
}

// Concerns reports whether a change is about somebody.
func Concerns(c keyservice.Change, id Identity) bool {
	if c.Sessions && id.Instance == nil && !strings.HasPrefix(id.AccessKeyID, string(iam.KeyPrefix)) {
		return true
	}
	return c.All || slices.Contains(c.AccessKeyIDs, id.AccessKeyID) || slices.Contains(c.UserIDs, id.UserID) ||
		id.Instance != nil && slices.Contains(c.Instances, id.Instance.ID) || id.Machine != nil && slices.Contains(c.Instances, id.Machine.ID)
}
