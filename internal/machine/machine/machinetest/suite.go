// SPDX-License-Identifier: Apache-2.0

// Package machinetest is the test suite that every [machine.Provider] passes.
package machinetest

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/machine/machine"
)

// The VPC that a provider under test must have, and the zone and domain of its machines.
const (
	VPC    = "192.168.64.0/18"
	VPCID  = "vpc-0000000000000000a"
	Zone   = "ap-test-1a"
	ZoneID = "apt1-az1"
	Domain = "ap-test-1.compute.internal"
)

// Region is the region that a provider under test must have. AWS has none of that name, so that nothing comes from
// elsewhere.
func Region() region.Region {
	return region.Region{Name: "ap-test-1", Zones: [3]region.Zone{{Name: Zone, ID: ZoneID}, {Name: "ap-test-1b", ID: "apt1-az2"}, {Name: "ap-test-1c", ID: "apt1-az3"}}}
}

// SubnetID is the one subnet of the VPC, which is all of it.
const SubnetID = "subnet-0000000000000000a"

// Subnets lists it. Addresses below the eleventh are taken.
func Subnets() ([]machine.Subnet, error) {
	subnet := machine.Subnet{ID: SubnetID, VPC: VPCID, Zone: Zone, CIDR: netip.MustParsePrefix(VPC)}
	for address := netip.MustParseAddr("192.168.64.4"); address != netip.MustParseAddr("192.168.64.11"); address = address.Next() {
		subnet.Taken = append(subnet.Taken, address)
	}
	return []machine.Subnet{subnet}, nil
}

// Ids of machines that the suite launches.
const (
	First  = "i-0000000000000000a"
	Second = "i-0000000000000000b"
	third  = "i-0000000000000000c"
)

// Factory makes a provider. Providers made by one factory share their state, as those of a service that is restarted
// do.
type Factory func(t *testing.T) machine.Provider

// Run runs the suite. Each test gets a factory, and so a state, of its own; it must clean up by itself. name is the
// provider's in the table of capabilities, where an unknown name has none. userData may be anything that the provider's
// machines can do without harm.
func Run(t *testing.T, name v1alpha1.Provider, userData []byte, factory func(t *testing.T) Factory) {
	t.Helper()
	s := &suite{name: name, userData: userData}
	for name, test := range map[string]func(*testing.T, Factory){
		"LaunchAssignsAddressAndName":      s.launchAssigns,
		"LaunchIsIdempotent":               s.launchIsIdempotent,
		"LaunchRefusesBadRequests":         s.launchRefuses,
		"StopKeepsAndLaunchBootsAgain":     s.stopKeeps,
		"TerminateRemovesAndIsIdempotent":  s.terminateRemoves,
		"AddressesAreReused":               s.addressesAreReused,
		"ListIsSorted":                     s.listIsSorted,
		"UnknownInstancesAreNotFound":      s.unknownIsNotFound,
		"AnotherProviderSeesTheSame":       s.anotherSeesTheSame,
		"LaunchesAtOnceGetTheirOwnAddress": s.launchesAtOnce,
		"CapabilitiesWorkOrAreRefused":     s.capabilities,
	} {
		t.Run(name, func(t *testing.T) { test(t, factory(t)) })
	}
}

type suite struct {
	name     v1alpha1.Provider
	userData []byte
}

func (s *suite) launch(t *testing.T, p machine.Provider, id string) machine.Instance {
	t.Helper()
	instance, err := p.Launch(t.Context(), machine.LaunchRequest{ID: id, UserData: s.userData})
	if err != nil {
		t.Fatalf("Launch(%s): %v", id, err)
	}
	return instance
}

func (s *suite) launchAssigns(t *testing.T, factory Factory) {
	p := factory(t)
	instance := s.launch(t, p, First)
	if want := netip.MustParseAddr("192.168.64.11"); instance.PrivateIP != want {
		t.Errorf("address is %s, want %s", instance.PrivateIP, want)
	}
	if want := "ip-192-168-64-11." + Domain; instance.PrivateDNSName != want {
		t.Errorf("name is %s, want %s", instance.PrivateDNSName, want)
	}
	if instance.Zone != Zone {
		t.Errorf("zone is %s, want %s", instance.Zone, Zone)
	}
	if instance.ID != First || instance.LaunchTime.IsZero() {
		t.Errorf("instance is %+v, want id %s and a launch time", instance, First)
	}
	if instance.State != machine.Running {
		t.Errorf("state is %s, want %s", instance.State, machine.Running)
	}
	got, err := p.Get(t.Context(), First)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	equal(t, "Get", got, instance)
}

func (s *suite) launchIsIdempotent(t *testing.T, factory Factory) {
	p := factory(t)
	first := s.launch(t, p, First)
	equal(t, "second Launch", s.launch(t, p, First), first)
	instances, err := p.List(t.Context())
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	equal(t, "List", instances, []machine.Instance{first})
}

func (s *suite) launchRefuses(t *testing.T, factory Factory) {
	p := factory(t)
	for _, request := range []machine.LaunchRequest{
		{ID: "", UserData: s.userData},
		{ID: "../../etc", UserData: s.userData},
		{ID: "i-0000000000000000A", UserData: s.userData},
		{ID: First, UserData: bytes.Repeat([]byte("x"), machine.MaxUserData+1)},
	} {
		if instance, err := p.Launch(t.Context(), request); err == nil {
			t.Errorf("Launch(%q, %d bytes) made %+v, want an error", request.ID, len(request.UserData), instance)
		}
	}
	instances, err := p.List(t.Context())
	if err != nil || len(instances) != 0 {
		t.Errorf("List after refused launches is %v, %v; want nothing", instances, err)
	}
}

func (s *suite) stopKeeps(t *testing.T, factory Factory) {
	p := factory(t)
	for _, id := range []string{First, "no id at all"} {
		if err := p.Stop(t.Context(), id); err != nil {
			t.Errorf("Stop of %q, which does not exist: %v", id, err)
		}
	}
	if left, err := p.List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("List after Stop of what does not exist is %v, %v; want nothing", left, err)
	}
	first := s.launch(t, p, First)
	stopped := first
	stopped.State = machine.Stopped
	for range 2 {
		if err := p.Stop(t.Context(), First); err != nil {
			t.Fatalf("Stop: %v", err)
		}
		got, err := p.Get(t.Context(), First)
		if err != nil {
			t.Fatalf("Get after Stop: %v", err)
		}
		equal(t, "Get after Stop", got, stopped)
	}
	if other := s.launch(t, p, Second); other.PrivateIP == first.PrivateIP {
		t.Errorf("another machine has the address %s of one that is stopped", other.PrivateIP)
	}
	p = factory(t)
	instances, err := p.List(t.Context())
	if err != nil || len(instances) != 2 {
		t.Fatalf("List is %v, %v; want two", instances, err)
	}
	equal(t, "List of another provider", instances[0], stopped)
	equal(t, "Launch after Stop", s.launch(t, p, First), first)
	if err := p.Stop(t.Context(), First); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	if err := p.Terminate(t.Context(), First); err != nil {
		t.Fatalf("Terminate of a stopped machine: %v", err)
	}
	if _, err := p.Get(t.Context(), First); !errors.Is(err, machine.ErrNotFound) {
		t.Errorf("Get after Terminate: %v, want ErrNotFound", err)
	}
}

func (s *suite) terminateRemoves(t *testing.T, factory Factory) {
	p := factory(t)
	s.launch(t, p, First)
	for range 2 {
		if err := p.Terminate(t.Context(), First); err != nil {
			t.Fatalf("Terminate: %v", err)
		}
		if _, err := p.Get(t.Context(), First); !errors.Is(err, machine.ErrNotFound) {
			t.Errorf("Get after Terminate: %v, want ErrNotFound", err)
		}
	}
	if err := p.Terminate(t.Context(), "no id at all"); err != nil {
		t.Errorf("Terminate of what can be no machine: %v", err)
	}
}

func (s *suite) addressesAreReused(t *testing.T, factory Factory) {
	p := factory(t)
	first := s.launch(t, p, First)
	second := s.launch(t, p, Second)
	if first.PrivateIP == second.PrivateIP {
		t.Fatalf("both machines have %s", first.PrivateIP)
	}
	if err := p.Terminate(t.Context(), First); err != nil {
		t.Fatalf("Terminate: %v", err)
	}
	if next := s.launch(t, p, third); next.PrivateIP != first.PrivateIP {
		t.Errorf("the next machine has %s, want the address that is free again, %s", next.PrivateIP, first.PrivateIP)
	}
}

func (s *suite) listIsSorted(t *testing.T, factory Factory) {
	p := factory(t)
	second := s.launch(t, p, Second)
	first := s.launch(t, p, First)
	instances, err := p.List(t.Context())
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	equal(t, "List", instances, []machine.Instance{first, second})
}

func (s *suite) unknownIsNotFound(t *testing.T, factory Factory) {
	p := factory(t)
	for _, id := range []string{First, "../state", ""} {
		if _, err := p.Get(t.Context(), id); !errors.Is(err, machine.ErrNotFound) {
			t.Errorf("Get(%q): %v, want ErrNotFound", id, err)
		}
	}
}

func (s *suite) anotherSeesTheSame(t *testing.T, factory Factory) {
	first := s.launch(t, factory(t), First)
	p := factory(t)
	got, err := p.Get(t.Context(), First)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	equal(t, "Get", got, first)
	equal(t, "Launch", s.launch(t, p, First), first)
	if err := p.Terminate(t.Context(), First); err != nil {
		t.Fatalf("Terminate: %v", err)
	}
}

func (s *suite) launchesAtOnce(t *testing.T, factory Factory) {
	p := factory(t)
	type result struct {
		instance machine.Instance
		err      error
	}
	results := make(chan result)
	ids := []string{First, Second, third, First}
	for _, id := range ids {
		go func() {
			instance, err := p.Launch(t.Context(), machine.LaunchRequest{ID: id, UserData: s.userData})
			results <- result{instance, err}
		}()
	}
	owner := map[netip.Addr]string{}
	for range ids {
		r := <-results
		if r.err != nil {
			t.Errorf("Launch: %v", r.err)
			continue
		}
		if other, ok := owner[r.instance.PrivateIP]; ok && other != r.instance.ID {
			t.Errorf("%s and %s both have %s", other, r.instance.ID, r.instance.PrivateIP)
		}
		owner[r.instance.PrivateIP] = r.instance.ID
	}
	if len(owner) != 3 {
		t.Errorf("three machines have %d addresses", len(owner))
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
