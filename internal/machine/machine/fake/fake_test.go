// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"errors"
	"testing"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/fake"
	"muster.dev/muster/internal/machine/machine/machinetest"
)

func provider() *fake.Provider {
	subnets, _ := machinetest.Subnets() // which never fails
	return fake.New(fake.Config{Subnet: subnets[0], Region: machinetest.Region()})
}

func TestProvider(t *testing.T) {
	machinetest.Run(t, fake.Name, []byte("told"), func(*testing.T) machinetest.Factory {
		p := provider()
		return func(*testing.T) machine.Provider { return p }
	})
}

func TestFailsOnDemand(t *testing.T) {
	p, failure := provider(), errors.New("no capacity")
	p.Fail(fake.Launch, failure)
	request := machine.LaunchRequest{ID: machinetest.First, UserData: []byte("told")}
	if _, err := p.Launch(t.Context(), request); !errors.Is(err, failure) {
		t.Errorf("first Launch: %v, want %v", err, failure)
	}
	if _, err := p.Launch(t.Context(), request); err != nil {
		t.Errorf("second Launch: %v", err)
	}
	if got := string(p.UserData(machinetest.First)); got != "told" {
		t.Errorf("user data is %q", got)
	}
	p.Die(machinetest.First)
	if instance, err := p.Get(t.Context(), machinetest.First); err != nil || instance.State != machine.Stopped {
		t.Errorf("Get after Die: %+v, %v", instance, err)
	}
	if p.Calls(fake.Launch) != 2 {
		t.Errorf("Launch was called %d times, want 2", p.Calls(fake.Launch))
	}
}
