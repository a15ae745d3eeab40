// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/logshipper"
)

// newShipper prepares the shipper of the account's logs.
func newShipper(s *Service, account component.Account) (*logshipper.Shipper, error) {
	return logshipper.OfAccount(account, func(spec component.Spec) error { return s.accountProcesses().Add(spec) }, func() []component.Config { return configurations(s) }, s.cfg.Log)
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
