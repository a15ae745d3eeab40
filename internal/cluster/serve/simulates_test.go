// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/machine/machine/simulated"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// A cluster has the simulator if simulated machines are asked for, can only be asked for, or are there.
func TestSimulates(t *testing.T) {
	account := component.Account{State: statedir.Dir(t.TempDir()), VPC: true, Region: machinetest.Region()}
	rootless := account
	rootless.VPC = false
	local, asked := clusterconfig.Named("blue", 1, v1alpha1.ProviderLocal), clusterconfig.Named("blue", 1, v1alpha1.ProviderSimulated)
	check := func(what string, account component.Account, c clusterconfig.Config, want bool) {
		t.Helper()
		if got := simulates(account, c); got != want {
			t.Errorf("%s: %t", what, got)
		}
	}
	check("local machines", account, local, false)
	check("simulated machines are asked for", account, asked, true)
	check("local machines without root", rootless, local, true)
	store, err := machine.NewStore(machine.StoreConfig{Dir: account.State.Machines(), Subnets: machinetest.Subnets, Region: account.Region})
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"green", "blue"} {
		check("simulated machines of another cluster", account, local, false)
		if err := launchSimulated(t, store, cluster); err != nil {
			t.Fatal(err)
		}
	}
	check("a simulated machine", account, local, true)
}

func launchSimulated(t *testing.T, store *machine.Store, cluster string) error {
	t.Helper()
	p, err := simulated.New(simulated.Config{Store: store})
	if err != nil {
		return err
	}
	_, err = p.Launch(t.Context(), machine.LaunchRequest{ID: map[string]string{"green": "i-0000000000000000a", "blue": "i-0000000000000000b"}[cluster], Cluster: cluster})
	return err
}
