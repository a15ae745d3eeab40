// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"errors"
	"os"
	"path/filepath"
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

// TestListWithADamagedRecord lists the other machines, and Get says what is wrong with the one.
func TestListWithADamagedRecord(t *testing.T) {
	store, err := machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), Subnets: machinetest.Subnets, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := simulated.New(simulated.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{machinetest.First, machinetest.Second} {
		if _, err := p.Launch(t.Context(), machine.LaunchRequest{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(store.Path(machinetest.First), machine.RecordFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if instances, err := p.List(t.Context()); err != nil || len(instances) != 1 || instances[0].ID != machinetest.Second {
		t.Errorf("List is %+v, %v", instances, err)
	}
	if _, err := p.Get(t.Context(), machinetest.First); !errors.Is(err, machine.ErrDamaged) {
		t.Errorf("Get: %v", err)
	}
	if err := p.Terminate(t.Context(), machinetest.First); err != nil {
		t.Error(err)
	}
}

// A launch is told, once its machine is one that its cluster has.
func TestLaunchIsTold(t *testing.T) {
	store, err := machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), Subnets: machinetest.Subnets, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	p, err := simulated.New(simulated.Config{Store: store, Launched: func() {
		if has, err := simulated.Has(store, "blue"); err != nil || !has {
			t.Errorf("told of a machine, and the cluster has one: %t, %v", has, err)
		}
		told++
	}})
	if err != nil {
		t.Fatal(err)
	}
	if has, err := simulated.Has(store, "blue"); err != nil || has {
		t.Errorf("has machines before the first: %t, %v", has, err)
	}
	if _, err := p.Launch(t.Context(), machine.LaunchRequest{ID: machinetest.First, Cluster: "blue"}); err != nil {
		t.Fatal(err)
	}
	if has, err := simulated.Has(store, "green"); err != nil || has || told != 1 {
		t.Errorf("told %d times, and another cluster has machines: %t, %v", told, has, err)
	}
}
