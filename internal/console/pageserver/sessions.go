// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// ticketLife is how long the address that begins a session is good, and sessionLife how long a session is.
	ticketLife, sessionLife = 10 * time.Minute, 12 * time.Hour
	// mostTickets and mostSessions are how many there may be at once. With one more, the oldest goes.
	mostTickets, mostSessions = 8, 8
	// cookiePrefix begins the name of the cookie. The port follows: cookies of a host are those of all its ports.
	cookiePrefix = "muster-console-"
)

// secretHash is what is kept of a ticket or a cookie.
type secretHash [sha256.Size]byte

// session is one browser that is signed in.
type session struct {
	// token goes with each request of it that is not GET.
	token string
	// ctx ends with the session.
	ctx    context.Context //nolint:containedctx // it is the session's life, not a request's
	end    context.CancelFunc
	before time.Time // when it is over
	// by is who it is of.
	by *viewing
	// queries has an entry while a query of it about kept logs runs. All sessions of an IAM identity share it.
	queries chan struct{}
}

// sessions are the tickets and sessions of a server. They are in memory alone.
type sessions struct {
	now func() time.Time

	mu      sync.Mutex
	tickets map[secretHash]time.Time // when each is over
	all     map[secretHash]session
	used    map[secretHash]proof // tokens of IAM identities
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, tickets: map[secretHash]time.Time{}, all: map[secretHash]session{}, used: map[secretHash]proof{}}
}

// secret is a new secret of 256 bits.
func secret() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // it never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

func hashOf(secret string) secretHash { return sha256.Sum256([]byte(secret)) }

// ticket makes a ticket.
func (s *sessions) ticket() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := secret()
	for hash, before := range s.tickets {
		if !s.now().Before(before) {
			delete(s.tickets, hash)
		}
	}
	if len(s.tickets) >= mostTickets {
		delete(s.tickets, oldestOf(s.tickets, func(before time.Time) time.Time { return before }))
	}
	s.tickets[hashOf(made)] = s.now().Add(ticketLife)
	return made
}

// oldestOf is the entry that is over first.
func oldestOf[T any](all map[secretHash]T, before func(T) time.Time) (oldest secretHash) {
	var at time.Time
	for hash, one := range all {
		if b := before(one); at.IsZero() || b.Before(at) {
			oldest, at = hash, b
		}
	}
	return oldest
}

// enter begins a session by a ticket, which is good no more then.
func (s *sessions) enter(ticket, host string) (*http.Cookie, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.tickets[hashOf(ticket)]
	delete(s.tickets, hashOf(ticket))
	if !ok || !s.now().Before(before) {
		return nil, false
	}
	return s.begin(host, &viewing{}), true
}

// prove begins a session of an IAM identity.
func (s *sessions) prove(host string, by *viewing) *http.Cookie {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin(host, by)
}

// begin begins a session. With one too many, one of its kind goes: nobody who signs in by IAM ends a session of the user of the command. The
// caller holds the lock.
func (s *sessions) begin(host string, by *viewing) *http.Cookie {
	alike, queries := map[secretHash]session{}, make(chan struct{}, 1)
	for hash, one := range s.all {
		if !s.now().Before(one.before) {
			one.end()
			delete(s.all, hash)
			continue
		}
		if (one.by.who == nil) == (by.who == nil) {
			alike[hash] = one
		}
		if by.who != nil && one.by.owner() == by.owner() {
			queries = one.queries
		}
	}
	if len(alike) >= mostSessions {
		gone := crowded(alike, by.owner())
		s.all[gone].end()
		delete(s.all, gone)
	}
	value := secret()
	ctx, end := context.WithCancel(context.Background())
	s.all[hashOf(value)] = session{token: secret(), ctx: ctx, end: end, before: s.now().Add(sessionLife), by: by, queries: queries}
	return cookie(host, value)
}

// proof is a used token: its owner, and the moment until which it is remembered.
type proof struct {
	owner string
	until time.Time
}

// fresh reports whether a token of an identity was not used before, and remembers it.
func (s *sessions) fresh(token, owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.used, func(_ secretHash, p proof) bool { return !s.now().Before(p.until) })
	own := 0
	for _, p := range s.used {
		if p.owner == owner {
			own++
		}
	}
	if _, was := s.used[hashOf(token)]; was || own >= mostProofs {
		return false
	}
	s.used[hashOf(token)] = proof{owner, s.now().Add(proofLife)}
	return true
}

// of is the session of a request.
func (s *sessions) of(r *http.Request) (session, bool) {
	c, err := r.Cookie(cookieName(r.Host))
	if err != nil {
		return session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[hashOf(c.Value)]
	if ok && !s.now().Before(one.before) {
		one.end()
		delete(s.all, hashOf(c.Value))
		return session{}, false
	}
	return one, ok
}

// leave ends the session of a request. The cookie takes the browser's own away.
func (s *sessions) leave(r *http.Request) *http.Cookie {
	if c, err := r.Cookie(cookieName(r.Host)); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one, ok := s.all[hashOf(c.Value)]; ok {
			one.end()
			delete(s.all, hashOf(c.Value))
		}
	}
	gone := cookie(r.Host, "") //nolint:gosec // see cookie
	gone.MaxAge = -1
	return gone
}

// cookie has no name of a host and no moment: it is the browser's for this host alone, until it is closed. It is not
// Secure, since the console speaks HTTP on a loopback address.
func cookie(host, value string) *http.Cookie {
	return &http.Cookie{Name: cookieName(host), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode} //nolint:gosec // see above
}

func cookieName(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		port = "80"
	}
	return cookiePrefix + port
}
