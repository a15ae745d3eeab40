// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/component"
)

const (
	// serveAgain is the pause before the documents are tried to be served again.
	serveAgain = 2 * time.Second
	// hostNameInterval is how often this host's resolver is asked where the name of issuers leads.
	hostNameInterval = time.Minute
)

// Serving serves the documents of the account's issuers, and knows what keeps people from finding them. It is safe for
// use by many at once.
type Serving struct {
	log *slog.Logger

	mu       sync.Mutex
	failures map[netip.Addr]string // why documents are not served, by the address at which they are not
	strayed  string                // why programs of this host do not find issuers by the host's name any more
}

// NewServing serves nothing yet.
func NewServing(log *slog.Logger) *Serving {
	return &Serving{log: log, failures: map[netip.Addr]string{}}
}

// Socket is where the relays of VPCs bring pods and machines to the documents; empty where issuers have no name in VPCs.
func Socket(account component.Account) string {
	if at, err := ReadEndpoint(account.State.Issuers()); err != nil || !account.VPC || at.InVPC() == "" {
		return ""
	}
	return account.State.IssuersSocket()
}

// Run serves until the context ends, at the account's address and where this host's name led to. The configuration says
// the rest. A failure to serve is said in the log, once, and is among Failures until it is over.
func (s *Serving) Run(ctx context.Context, at component.Issuers, config ServerConfig) {
	config.Address, config.Port, config.Log = at.Address, at.Port, s.log
	var group sync.WaitGroup
	defer group.Wait()
	if at.Loopback.IsValid() {
		byName := config
		byName.Address, byName.Socket, byName.CredentialOf = at.Loopback, "", nil
		group.Go(func() { s.serveAt(ctx, byName) })
		group.Go(func() { s.watchHostName(ctx, at) })
	}
	s.serveAt(ctx, config)
}

func (s *Serving) serveAt(ctx context.Context, config ServerConfig) {
	config.Listening = func() { s.set(config.Address, nil) }
	defer config.Listening()
	for ctx.Err() == nil {
		err := Serve(ctx, config)
		if ctx.Err() != nil {
			return
		}
		s.set(config.Address, err)
		pause(ctx, serveAgain)
	}
}

func (s *Serving) set(at netip.Addr, err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	s.mu.Lock()
	changed := s.failures[at] != failure
	s.failures[at] = failure
	s.mu.Unlock()
	switch {
	case changed && err != nil:
		s.log.Warn("the documents of service account issuers are not served", "address", at.String(), "error", err, "again", serveAgain)
	case changed:
		s.log.Info("the documents of service account issuers are served again", "address", at.String())
	}
}

// Failures say why the documents are not served, sorted by the address at which they are not.
func (s *Serving) Failures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []string
	for _, at := range slices.SortedFunc(maps.Keys(s.failures), netip.Addr.Compare) {
		if failure := s.failures[at]; failure != "" {
			failures = append(failures, failure)
		}
	}
	return failures
}

// watchHostName keeps a note of whether programs of this host find the issuers by the name in their URLs, until the
// context ends. The name was this host's own; it may have got another since, or /etc/hosts may have changed.
func (s *Serving) watchHostName(ctx context.Context, at component.Issuers) {
	for ctx.Err() == nil {
		found, err := Resolve(ctx, at.Host)
		if ctx.Err() != nil {
			return
		}
		note := Strayed(at, found, err)
		s.mu.Lock()
		changed := s.strayed != note
		s.strayed = note
		s.mu.Unlock()
		if changed && note != "" {
			s.log.Warn("programs of this host do not find service account issuers", "note", note)
		}
		pause(ctx, hostNameInterval)
	}
}

// Note is what an operator should know about who finds the issuer of a cluster; nothing for a cluster without machines
// that run pods.
func (s *Serving) Note(specs component.Config, pods bool) string {
	if !pods {
		return ""
	}
	if IsAddress(specs.Issuers.Host) {
		return fmt.Sprintf("pods cannot reach the issuer of service account tokens, %s. %s", specs.Issuer.URL, WithoutName)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strayed
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
