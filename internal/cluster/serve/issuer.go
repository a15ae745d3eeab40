// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
)

// issuerRetry is the pause before the documents of issuers are tried to be served again.
const issuerRetry = 2 * time.Second

// issuerDocuments finds the documents of the cluster that runs here and whose issuer has an id.
func (s *Service) issuerDocuments(id string) (issuer.Documents, bool) {
	for _, h := range s.clusters() {
		h.mu.Lock()
		own := h.issuing
		h.mu.Unlock()
		if own == nil || own.Issuer.ID != id {
			continue
		}
		documents, _, err := own.At(time.Now())
		if err != nil {
			h.log.Error("the documents of the issuer are not served", "error", err)
		}
		return documents, err == nil
	}
	return issuer.Documents{}, false
}

// serveIssuers serves the documents of all clusters' issuers until the context ends, at the account's address and where
// this host's name led to.
func (s *Service) serveIssuers(ctx context.Context, account component.Account) {
	socket, credentialOf := s.issuersInVPC(account)
	config := issuer.ServerConfig{
		Address: account.Issuers.Address, Port: account.Issuers.Port, Credential: account.Credential(component.CredentialIssuer), Log: s.cfg.Log,
		Lookup: s.issuerDocuments,
	}
	var group sync.WaitGroup
	defer group.Wait()
	if account.Issuers.Loopback.IsValid() {
		byName := config
		byName.Address = account.Issuers.Loopback
		group.Go(func() { s.serveIssuersAt(ctx, byName) })
		group.Go(func() { s.watchHostName(ctx, account.Issuers) })
	}
	config.Socket, config.CredentialOf = socket, credentialOf
	s.serveIssuersAt(ctx, config)
}

// serveIssuersAt serves at one address. A failure to do so is said in the log, once, and in the status until it is
// over.
func (s *Service) serveIssuersAt(ctx context.Context, config issuer.ServerConfig) {
	config.Listening = func() { s.setIssuerFailure(config.Address, nil) }
	defer config.Listening()
	for ctx.Err() == nil {
		err := issuer.Serve(ctx, config)
		if ctx.Err() != nil {
			return
		}
		s.setIssuerFailure(config.Address, err)
		_ = pause(ctx, issuerRetry)
	}
}

func (s *Service) setIssuerFailure(at netip.Addr, err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	s.mu.Lock()
	changed := s.issuerFailures[at] != failure
	s.issuerFailures[at] = failure
	s.mu.Unlock()
	switch {
	case changed && err != nil:
		s.cfg.Log.Warn("the documents of service account issuers are not served", "address", at.String(), "error", err, "again", issuerRetry)
	case changed:
		s.cfg.Log.Info("the documents of service account issuers are served again", "address", at.String())
	}
}

// issuerFailed are the failures, sorted by address. The service is locked.
func (s *Service) issuerFailed() []string {
	var failures []string
	for _, at := range slices.SortedFunc(maps.Keys(s.issuerFailures), netip.Addr.Compare) {
		if failure := s.issuerFailures[at]; failure != "" {
			failures = append(failures, failure)
		}
	}
	return failures
}
