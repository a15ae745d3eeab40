// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/platform/lru"
)

const (
	// remembered bounds the cache. Credentials that were asked for longest ago go first.
	remembered = 2000
	// fresh is how long credentials are handed out without a question, and how long those who waited for an answer are
	// given its failure.
	fresh = time.Second
	// spare is how long an answer is waited for where credentials are remembered: SDKs in pods wait for a second.
	spare = 700 * time.Millisecond
	// sweepEvery is how often the cache is gone through for credentials that have half their life behind them, and
	// refreshPause the time between two questions then.
	sweepEvery   = 30 * time.Second
	refreshPause = 300 * time.Millisecond
)

// Credentials are those of a pod.
type Credentials struct {
	AccessKeyID, SecretAccessKey, Token, AccountID string
	Expiration                                     time.Time
}

// String keeps the secrets out of what is printed.
func (c Credentials) String() string { return "credentials " + c.AccessKeyID }

// GoString keeps the secrets out of what is printed.
func (c Credentials) GoString() string { return c.String() }

// Refused is the answer of EKS Auth to a token that it gives nothing for, and why. It is told to the pod.
type Refused struct {
	Status        int // of HTTP
	Code, Message string
}

func (r *Refused) Error() string { return r.Code + ": " + r.Message }

// Asker asks EKS Auth for the credentials of a pod by its token. A refusal is a *Refused; any other error means that it
// could not be asked.
type Asker interface {
	Ask(ctx context.Context, token string) (Credentials, error)
}

// cache remembers credentials by token.
type cache struct {
	ask Asker
	now func() time.Time

	mu      sync.Mutex
	entries *lru.Map[[sha256.Size]byte, *entry]
}

// entry is what is known of one token. The one who has put a value into asking asks; others wait for that answer.
type entry struct {
	token  string
	ends   time.Time // of the token
	asking chan struct{}
	known  atomic.Pointer[known]

	// Of the last question, for those who waited. They are for the one who asks.
	failure error
	failed  time.Time
}

// known are credentials as they are handed out.
type known struct {
	body             []byte
	got, half, until time.Time
}

func newCache(ask Asker, now func() time.Time) *cache {
	return &cache{ask: ask, now: now, entries: lru.New[[sha256.Size]byte, *entry](remembered)}
}

// look returns what is known of a token if it is fresh.
func (c *cache) look(key [sha256.Size]byte) ([]byte, bool) {
	c.mu.Lock()
	e, ok := c.entries.Get(key)
	c.mu.Unlock()
	if !ok {
		return nil, false
	}
	k, now := e.known.Load(), c.now()
	if k == nil || now.Sub(k.got) >= fresh || now.Before(k.got) || !now.Before(k.until) {
		return nil, false
	}
	return k.body, true
}

// get asks for the credentials of a token, unless somebody did so within the last second.
func (c *cache) get(ctx context.Context, key [sha256.Size]byte, token string, ends time.Time) ([]byte, error) {
	c.mu.Lock()
	e, ok := c.entries.Get(key)
	if !ok {
		e = &entry{token: token, ends: ends, asking: make(chan struct{}, 1)}
		c.entries.Put(key, e)
	}
	c.mu.Unlock()
	select {
	case e.asking <- struct{}{}:
		defer func() { <-e.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if body, ok := c.look(key); ok {
		return body, nil
	}
	if now := c.now(); e.failure != nil && now.Sub(e.failed) < fresh && !now.Before(e.failed) {
		return nil, e.failure
	}
	// The answer is for all who wait for it: who asked first may go away.
	return c.renew(context.WithoutCancel(ctx), key, e)
}

// renew asks. It is the caller's turn.
func (c *cache) renew(ctx context.Context, key [sha256.Size]byte, e *entry) ([]byte, error) {
	before := e.known.Load()
	if before != nil && c.now().Before(before.until) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, spare)
		defer cancel()
	}
	credentials, err := c.ask.Ask(ctx, e.token)
	now := c.now()
	if err == nil && !now.Before(credentials.Expiration) {
		err = fmt.Errorf("EKS Auth gave credentials that ended at %s: the clock of this machine may be wrong", credentials.Expiration.Format(time.RFC3339))
	}
	if err == nil {
		var k *known
		if k, err = knownOf(credentials, now); err == nil {
			e.known.Store(k)
			e.failure = nil
			return k.body, nil
		}
	}
	if _, refused := errors.AsType[*Refused](err); !refused && before != nil && now.Before(before.until) {
		kept := *before
		kept.got = now // the next question is a second away, too
		e.known.Store(&kept)
		return before.body, nil
	}
	e.failure, e.failed = err, now
	e.known.Store(nil)
	c.forget(key, e)
	return nil, err
}

func (c *cache) forget(key [sha256.Size]byte, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held, ok := c.entries.Get(key); ok && held == e {
		c.entries.Delete(key)
	}
}

// answer is what AWS's SDKs read of a provider of container credentials.
type answer struct {
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	Token           string
	AccountID       string `json:"AccountId"`
	Expiration      string
}

func knownOf(c Credentials, now time.Time) (*known, error) {
	body, err := json.Marshal(answer{c.AccessKeyID, c.SecretAccessKey, c.Token, c.AccountID, c.Expiration.UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return nil, fmt.Errorf("writing credentials: %w", err)
	}
	return &known{body: body, got: now, half: now.Add(c.Expiration.Sub(now) / 2), until: c.Expiration}, nil
}

// sweep renews what has half its life behind it, one after the other, and forgets what can be renewed no more.
func (c *cache) sweep(ctx context.Context) {
	now := c.now()
	due := map[[sha256.Size]byte]*entry{}
	c.mu.Lock()
	c.entries.DeleteFunc(func(key [sha256.Size]byte, e *entry) bool {
		k := e.known.Load()
		switch {
		case k == nil:
			return false // somebody is just asking
		case !now.Before(k.until), !now.Before(e.ends):
			return true
		case !now.Before(k.half):
			due[key] = e
		}
		return false
	})
	c.mu.Unlock()
	for key, e := range due {
		select {
		case e.asking <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if k := e.known.Load(); k != nil && !c.now().Before(k.half) {
			_, _ = c.renew(ctx, key, e) // a refusal is told to the pod when it asks
		}
		<-e.asking
		if !wait(ctx, refreshPause) {
			return
		}
	}
}

// keep sweeps until the context ends.
func (c *cache) keep(ctx context.Context) {
	for wait(ctx, sweepEvery) {
		c.sweep(ctx)
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// statusOf is the status and code of an error.
func statusOf(err error) (status int, code, message string) {
	if refused, ok := errors.AsType[*Refused](err); ok {
		return refused.Status, refused.Code, refused.Message
	}
	return http.StatusServiceUnavailable, "ServiceUnavailableException", "EKS Auth does not answer this machine: try again"
}
