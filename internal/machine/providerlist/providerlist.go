// SPDX-License-Identifier: Apache-2.0

// Package providerlist is the one list of providers of machines, a line each.
package providerlist

import (
	"log/slog"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/machine/simulated"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/userns"
)

// OfHost are the providers that this host can have, over the store of the account's instances. Simulates is called
// after the launch of each simulated machine, if it is not nil.
func OfHost(c component.Account, log *slog.Logger, simulates func()) (machine.Providers, error) {
	store, err := Store(c)
	if err != nil {
		return nil, err
	}
	providers := machine.Providers{}
	if providers[v1alpha1.ProviderSimulated], err = simulated.New(simulated.Config{Store: store, Launched: simulates}); err != nil || !c.VPC {
		return providers, err
	}
	providers[v1alpha1.ProviderLocal], err = local.New(local.Config{
		State: c.State, BinDir: c.BinDir, Subnets: local.Subnets(c.State), Region: c.Region, Log: log,
		IDs: func() (userns.IDs, error) { return local.IDs(c.State) },
	})
	return providers, err
}

// Store keeps the account's instances, of all providers.
func Store(c component.Account) (*machine.Store, error) {
	return machine.NewStore(machine.StoreConfig{Dir: c.State.Machines(), Subnets: local.Subnets(c.State), Region: c.Region})
}
