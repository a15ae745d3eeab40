// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	"muster.dev/muster/internal/cluster/serviceaccounts"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
)

// serveIssuers serves the documents of all clusters' issuers until the context ends.
func (s *Service) serveIssuers(ctx context.Context, account component.Account) {
	known := s.serviceAccounts()
	config := issuer.ServerConfig{Credential: account.Credential(component.CredentialIssuer), Lookup: known.Documents}
	if config.Socket = issuer.Socket(account); config.Socket != "" {
		config.CredentialOf = (&serviceaccounts.Clients{Clusters: known, Account: config.Credential}).Credential
	}
	s.issuers.Run(ctx, account.Issuers, config)
}

// serviceAccounts are those of the clusters that run here.
func (s *Service) serviceAccounts() serviceaccounts.Clusters {
	return serviceaccounts.Clusters{State: s.cfg.State, Log: s.cfg.Log, Running: func() []serviceaccounts.Cluster {
		var running []serviceaccounts.Cluster
		for _, h := range s.clusters() {
			h.mu.Lock()
			running = append(running, h.accounts)
			h.mu.Unlock()
		}
		return running
	}}
}
