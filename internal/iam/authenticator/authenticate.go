// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify"
)

// Config is what an authenticator works with.
type Config struct {
	ClusterID string
	Hosts     ststoken.Hosts
	Verifier  tokenverify.Verifier
	// Live reports whether what was found out before may be used now; always if nil. See keyservice.Client.Live.
	Live func() bool
	// Table returns the mappings as they are now, or nil while they are not known yet.
	Table func() *identity.Table
	// Remember and RememberNo are the TTLs for successful and failed verifications of a token; 1 min and 10 s if 0.
	Remember, RememberNo time.Duration
	// Most is how many tokens are remembered, and MostNo how many bad ones; 16384 and 2048 if 0.
	Most, MostNo int
	// Scrubbed are accounts whose principals are not logged.
	Scrubbed []string
	// Audiences that tokens are good for. If it is empty, the answer names no audiences, and the API server takes the
	// tokens for good for itself.
	Audiences []string
	// Mapped, if not nil, is called for each principal that is let in, at least on its first token. It must not take
	// long.
	Mapped func(Decision)
	// Refused, if not nil, is called for tokens of sessions that were refused before their maker was known, some times
	// a second at most. It must not take long.
	Refused func(keyservice.Refused)
	Metrics *Metrics
	Logger  *slog.Logger
	Now     func() time.Time // time.Now if nil
}

// Authenticator decides about tokens. It may be used by many at once.
type Authenticator struct {
	config Config
	memory *memory
	quota  quota // of lines about refused tokens

	reports reports

	mu     sync.Mutex
	asking map[hash]*asking
}

// asking is a token on its way through the verifier, for which all requests with the same one wait.
type asking struct {
	done    chan struct{}
	changes uint64
	id      *person
	cached  bool
	err     error
}

// New checks the configuration.
func New(c Config) (*Authenticator, error) {
	switch {
	case c.ClusterID == "":
		return nil, errors.New("an authenticator needs the id of its cluster, which tokens are signed for")
	case c.Verifier == nil || c.Table == nil || c.Metrics == nil || c.Logger == nil:
		return nil, errors.New("an authenticator needs a verifier, mappings, metrics and a logger")
	}
	if c.Live == nil {
		c.Live = func() bool { return true }
	}
	if c.Remember <= 0 {
		c.Remember = time.Minute
	}
	if c.RememberNo <= 0 {
		c.RememberNo = 10 * time.Second
	}
	if c.Most <= 0 {
		c.Most = 16384
	}
	if c.MostNo <= 0 {
		c.MostNo = 2048
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	a := &Authenticator{config: c, memory: newMemory(c.Most, c.MostNo), asking: map[hash]*asking{}}
	c.Metrics.remembered(a.memory.size)
	return a, nil
}

// Forget drops what a change is about. It has been forgotten when it returns.
func (a *Authenticator) Forget(c keyservice.Change) { a.memory.forget(c) }

// Authenticate decides about a token.
func (a *Authenticator) Authenticate(ctx context.Context, token string) Decision {
	if a.config.Table() == nil {
		return unavailable("the mappings have not been read yet")
	}
	id, claim, cached, err := a.identify(ctx, token)
	if err != nil {
		d := refused(err)
		d.Claim, d.Cached = claim, cached
		return d
	}
	d := a.decide(id, a.config.Table()) // as they are now: STS may have taken seconds, and a mapping may have ended meanwhile
	d.Cached = cached
	return d
}

// person is the maker of a token.
type person struct {
	tokenverify.Identity
	last atomic.Pointer[judged]
}

// judged is what a table made of a person. Tables do not change, so it is true as long as the table is the one that
// counts.
type judged struct {
	table    *identity.Table
	decision Decision
}

func (a *Authenticator) decide(p *person, table *identity.Table) Decision {
	if last := p.last.Load(); last != nil && last.table == table {
		return last.decision
	}
	d := mapped(&p.Identity, table.Map(p.Principal))
	p.last.Store(&judged{table: table, decision: d})
	if d.Result == Success {
		a.config.Verifier.Admit(p.AccessKeyID)
		if a.config.Mapped != nil {
			a.config.Mapped(d)
		}
	}
	return d
}

// identify finds the maker of a token, or the access key that it claims to be made with. The cheapest check comes
// first.
func (a *Authenticator) identify(ctx context.Context, token string) (id *person, claim string, cached bool, err error) {
	now := a.config.Now()
	if len(token) > ststoken.MaxSize || !strings.HasPrefix(token, ststoken.Prefix) {
		_, err := ststoken.Parse(token, a.config.ClusterID, a.config.Hosts, now) // says why
		if err == nil {
			err = errors.New("a malformed token was taken for a valid one")
		}
		return nil, "", false, err
	}
	h := sha256.Sum256([]byte(token))
	live, changes := a.config.Live(), a.memory.changes.Load()
	if live {
		if r, ok := a.memory.get(h, now); ok {
			if r.id == nil {
				a.config.Metrics.hitNo.Inc()
				return nil, r.claim, true, r.no
			}
			a.config.Metrics.hit.Inc()
			if !r.letIn && a.decide(r.id, a.config.Table()).Result == Success { // an entry has come: its token is not among those of strangers any more
				r.letIn = true
				a.memory.put(h, r, changes)
			}
			return r.id, "", true, nil
		}
	}
	t, err := ststoken.Parse(token, a.config.ClusterID, a.config.Hosts, now)
	if err != nil {
		return nil, "", false, err
	}
	a.config.Metrics.miss.Inc()
	id, cached, err = a.ask(ctx, h, t, live)
	return id, t.Signed.AccessKeyID, cached, err
}

// ask asks the verifier, once for all requests with the same token at the same time.
func (a *Authenticator) ask(ctx context.Context, h hash, t ststoken.Token, live bool) (id *person, cached bool, err error) {
	changes := a.memory.changes.Load()
	a.mu.Lock()
	q := a.asking[h]
	if q == nil && live { // it may have been answered just now
		if r, ok := a.memory.get(h, a.config.Now()); ok && r.id != nil {
			a.mu.Unlock()
			return r.id, true, nil
		}
	}
	if q == nil || q.changes != changes { // an older one may be answered by what is not true any more
		q = &asking{done: make(chan struct{}), changes: changes, err: errors.New("verifying ended without an answer")}
		a.asking[h] = q
		a.mu.Unlock()
		// Here and not in a goroutine, whose stack would have to grow first. If this caller hangs up meanwhile, it is
		// finished for the others.
		a.verify(context.WithoutCancel(ctx), h, t, live, q)
		return q.id, q.cached, q.err
	}
	a.mu.Unlock()
	select {
	case <-q.done:
		return q.id, q.cached, q.err
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

func (a *Authenticator) verify(ctx context.Context, h hash, t ststoken.Token, live bool, q *asking) {
	defer func() { // whatever happens, nobody waits forever
		a.mu.Lock()
		if a.asking[h] == q {
			delete(a.asking, h)
		}
		a.mu.Unlock()
		close(q.done)
	}()
	id, err := a.config.Verifier.Verify(ctx, t)
	no, refused := errors.AsType[*tokenverify.Refused](err)
	now := a.config.Now()
	if live && (isUnavailable(err) || isUnavailable(id.Unproven)) {
		if last, ok := a.memory.outlasting(h, now); ok {
			a.config.Metrics.hitOutage.Inc()
			q.id, q.cached, q.err = last, true, nil
			return
		}
	}
	switch {
	case err == nil:
		q.id, q.err = &person{Identity: id}, nil
		if isUnavailable(id.Unproven) {
			return
		}
		table := a.config.Table()
		r := remembered{id: q.id, until: earliest(now.Add(a.config.Remember), t.Expires, id.ValidUntil)}
		r.letIn = table != nil && a.decide(q.id, table).Result == Success
		a.memory.put(h, r, q.changes)
	case refused:
		q.err = no
		a.memory.put(h, remembered{no: no, claim: t.Signed.AccessKeyID, until: earliest(now.Add(a.config.RememberNo), t.Expires)}, q.changes)
	default:
		q.err = err
	}
}

// isUnavailable reports whether no answer could be had.
func isUnavailable(err error) bool {
	_, ok := errors.AsType[*tokenverify.Unavailable](err)
	return ok
}

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.Before(first) {
			first = t
		}
	}
	return first
}
