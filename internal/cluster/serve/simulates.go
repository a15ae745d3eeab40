// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"muster.dev/muster/internal/machine/machine/simulated"
	"muster.dev/muster/internal/machine/providerlist"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
)

// simulates reports whether a cluster needs the simulator: it is asked for simulated machines, or has some. Where there
// is no VPC, others cannot be asked for, and where machines cannot be read it may have some.
func simulates(account component.Account, wanted clusterconfig.Config) bool {
	if !account.VPC || simulated.Asked(wanted.NodeGroups) {
		return true
	}
	store, err := providerlist.Store(account)
	if err != nil {
		return true
	}
	has, err := simulated.Has(store, wanted.Cluster.Spec.Name)
	return has || err != nil
}

// simulated returns what is to be called after the launch of a simulated machine: the simulator starts with the first
// one.
func (h *hosted) simulated(c component.Config) func() {
	return func() {
		if !c.Simulates {
			h.requestReload()
		}
	}
}
