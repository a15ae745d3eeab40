// SPDX-License-Identifier: Apache-2.0

package issuerkeys

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/platform/lru"
)

const (
	// leastFresh and mostFresh bound how long keys are good without asking, whatever Cache-Control says.
	leastFresh, mostFresh = time.Minute, 24 * time.Hour
	defaultFresh          = time.Hour
	// stale is how long keys are good while their issuer does not answer.
	stale = 24 * time.Hour
	// again is the pause between two fetches for a key id that is not known, and failed between two that failed.
	again, failed = 30 * time.Second, 5 * time.Second
	timeout       = 5 * time.Second
	maxIssuers    = 100
	maxFetches    = 8
)

// Config is what a Fetcher needs. Zero values are for production.
type Config struct {
	// Roots are the authorities of issuers; the system's if nil.
	Roots *x509.CertPool
	// Refuse says why an address must not be dialled; RefuseAddress if nil.
	Refuse func(netip.Addr) error
	Now    func() time.Time // time.Now if nil
}

// Fetcher fetches keys and keeps them for a while.
type Fetcher struct {
	config Config
	get    getter
	places chan struct{}

	mu    sync.Mutex
	known *lru.Map[string, *entry]
}

// entry is what is known of an issuer. Its lock is held while it is fetched, so that many who ask cause one fetch.
type entry struct {
	address  string
	fetching chan struct{} // holds a value while somebody fetches

	mu      sync.Mutex
	issuer  string // as it calls itself
	keys    webidentity.Keys
	has     bool
	fetched time.Time
	fresh   time.Duration
	failure error
	failed  time.Time
}

// New makes a Fetcher.
func New(c Config) *Fetcher {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Refuse == nil {
		c.Refuse = RefuseAddress
	}
	return &Fetcher{config: c, get: newGetter(c), places: make(chan struct{}, maxFetches), known: lru.New[string, *entry](maxIssuers)}
}

// Keys returns the keys of an issuer, and fetches them if they are not known, old, or without the one of an id.
func (f *Fetcher) Keys(ctx context.Context, issuer, keyID string) (webidentity.Keys, error) {
	e := f.entry(addressOf(issuer))
	if keys, ok, err := e.known(f.config.Now(), issuer, keyID); ok {
		return keys, err
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case e.fetching <- struct{}{}:
		defer func() { <-e.fetching }()
	case <-waiting.Done():
		return f.busy(ctx, e, issuer)
	}
	if keys, ok, err := e.known(f.config.Now(), issuer, keyID); ok { // somebody else fetched them meanwhile
		return keys, err
	}
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	case <-waiting.Done():
		return f.busy(ctx, e, issuer)
	}
	// Others wait for the same keys, so the fetch goes on when the first caller goes away.
	fetching, cancelFetching := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancelFetching()
	got, err := f.fetch(fetching, e.address)
	e.took(f.config.Now(), got, err)
	return e.answer(f.config.Now(), issuer)
}

// busy is the answer to one that waited in vain.
func (f *Fetcher) busy(ctx context.Context, e *entry, issuer string) (webidentity.Keys, error) {
	if err := ctx.Err(); err != nil {
		return webidentity.Keys{}, err
	}
	e.took(f.config.Now(), fetched{}, errBusy)
	return e.answer(f.config.Now(), issuer)
}

// errBusy means that other issuers take all the time that there is for fetching.
var errBusy = fmt.Errorf("the keys of %d other issuers are being fetched: try again", maxFetches)

// addressOf is where an issuer is asked, in one spelling: a token may write the same URL in many ways, and nobody has
// proven yet that it is the issuer's. All count as one issuer, whose keys are good for the tokens that have the URL as
// the issuer writes it.
func addressOf(issuer string) string {
	if url, err := iam.ProviderURL(issuer); err == nil {
		return "https://" + url
	}
	return strings.TrimSuffix(issuer, "/")
}

func (f *Fetcher) entry(address string) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.known.Get(address)
	if !ok {
		e = &entry{address: address, fetching: make(chan struct{}, 1)}
		f.known.Put(address, e)
	}
	return e
}

// known is what can be said without asking the issuer.
func (e *entry) known(now time.Time, issuer, keyID string) (keys webidentity.Keys, ok bool, err error) {
	e.mu.Lock()
	age := now.Sub(e.fetched)
	fresh := e.has && age < e.fresh && (e.issuer == issuer && e.keys.Has(keyID) || age < again)
	tried := e.failure != nil && now.Sub(e.failed) < failed
	e.mu.Unlock()
	if !fresh && !tried {
		return webidentity.Keys{}, false, nil
	}
	keys, err = e.answer(now, issuer)
	return keys, true, err
}

// answer is what is known, old or not.
func (e *entry) answer(now time.Time, issuer string) (webidentity.Keys, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !e.has || e.failure != nil && now.Sub(e.fetched) >= stale:
		return webidentity.Keys{}, e.failure
	case e.issuer != issuer:
		return webidentity.Keys{}, fmt.Errorf("the issuer calls itself %.300q, and the token %.300q", e.issuer, issuer)
	}
	return e.keys, nil
}

// took remembers what a fetch brought.
func (e *entry) took(now time.Time, got fetched, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.failure, e.failed = err, now
		return
	}
	e.issuer, e.keys, e.has, e.fetched, e.fresh, e.failure = got.issuer, got.keys, true, now, got.fresh, nil
}

// fetched are the documents of an issuer.
type fetched struct {
	issuer string // as it calls itself
	keys   webidentity.Keys
	fresh  time.Duration
}

func (f *Fetcher) fetch(ctx context.Context, address string) (fetched, error) {
	raw, _, err := f.get(ctx, address+"/.well-known/openid-configuration")
	if err != nil {
		return fetched{}, fmt.Errorf("fetching discovery document: %w", err)
	}
	d, err := webidentity.ParseDiscovery(raw)
	if err != nil {
		return fetched{}, err
	}
	if addressOf(d.Issuer) != address {
		return fetched{}, fmt.Errorf("discovery document is of the issuer %.300q: must be of %s", d.Issuer, address)
	}
	raw, fresh, err := f.get(ctx, d.Keys)
	if err != nil {
		return fetched{}, fmt.Errorf("fetching keys: %w", err)
	}
	keys, err := webidentity.ParseKeys(raw)
	if err != nil {
		return fetched{}, err
	}
	if len(keys.IDs()) == 0 {
		return fetched{}, errors.New("the issuer publishes no key of RS256 or ES256")
	}
	return fetched{d.Issuer, keys, min(max(fresh, leastFresh), mostFresh)}, nil
}
