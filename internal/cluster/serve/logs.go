// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/logshipper"
)

// newShipper prepares the account's log store, and the shipper of its logs.
func newShipper(s *Service, account component.Account) (*logshipper.Shipper, error) {
	keeper := logshipper.NewKeeper(account, func(spec component.Spec) error {
		processes := s.accountProcesses()
		if processes == nil {
			return errors.New("the service is starting: try again")
		}
		return processes.Add(spec)
	})
	s.mu.Lock()
	s.logs = keeper
	s.mu.Unlock()
	return logshipper.OfAccount(keeper, func() []component.Config { return configurations(s) }, s.cfg.Log)
}

// keeperOf is the account's log store, once the account was prepared.
func keeperOf(s *Service) *logshipper.Keeper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs
}

// configurations are those of the clusters that run here.
func configurations(s *Service) []component.Config {
	var all []component.Config
	for _, h := range s.clusters() {
		h.mu.Lock()
		specs := h.specs
		if h.logging != nil {
			specs.Cluster.Spec.EKS = *h.logging
		}
		h.mu.Unlock()
		if specs.Dir != "" { // else it is being prepared
			all = append(all, specs)
		}
	}
	return all
}
