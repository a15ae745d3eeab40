// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/machine/machine/simulated"
)

func TestProvider(t *testing.T) {
	machinetest.Run(t, v1alpha1.ProviderSimulated, []byte("told"), func(t *testing.T) machinetest.Factory {
		t.Helper()
		dir := t.TempDir()
		return func(t *testing.T) machine.Provider {
			t.Helper()
			store, err := machine.NewStore(machine.StoreConfig{Dir: dir, Subnets: machinetest.Subnets, Region: machinetest.Region()})
			if err != nil {
				t.Fatal(err)
			}
			p, err := simulated.New(simulated.Config{Store: store})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
	})
}
