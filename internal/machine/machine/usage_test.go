// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
)

// roomFor is how many machines with a number of pods a subnet has room for.
func roomFor(u machine.Usage, pods int) (n int) {
	room := machine.NewRoom([]machine.Usage{u})
	for {
		if _, err := room.Take(machine.Demand{SubnetID: u.ID, Pods: pods}); err != nil {
			return n
		}
		n++
	}
}

// A subnet has room for as many machines as get addresses in it, endpoints of clusters beside them, and another VPC's
// machines take none.
func TestUsageAndRoom(t *testing.T) {
	cidr := netip.MustParsePrefix("10.0.0.0/28")
	subnets := []machine.Subnet{
		{ID: "subnet-1", VPC: "vpc-1", Zone: machinetest.Zone, CIDR: cidr, Taken: []netip.Addr{netip.MustParseAddr("10.0.0.6"), netip.MustParseAddr("10.0.0.20")}},
		{ID: "subnet-2", VPC: "vpc-2", Zone: machinetest.Zone, CIDR: cidr},
	}
	s, err := machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), Subnets: func() ([]machine.Subnet, error) { return subnets, nil }, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("local", machine.LaunchRequest{ID: "i-0000000000000000f", SubnetID: "subnet-2"}); err != nil {
		t.Fatal(err)
	}
	usage, err := s.Usage("vpc-1")
	if err != nil || len(usage) != 1 || usage[0].ID != "subnet-1" || len(usage[0].Machines) != 0 || roomFor(usage[0], 0) != 10 || usage[0].Free() != 10 {
		t.Fatalf("%+v, %v", usage, err)
	}
	var want []string
	for n := range roomFor(usage[0], 0) {
		want = append(want, fmt.Sprintf("i-%017d", n))
		if _, err := s.Put("local", machine.LaunchRequest{ID: want[n], SubnetID: "subnet-1"}); err != nil {
			t.Fatalf("machine %d of %d: %v", n, roomFor(usage[0], 0), err)
		}
	}
	if _, err := s.Put("local", machine.LaunchRequest{ID: "i-00000000000000099", SubnetID: "subnet-1"}); err == nil {
		t.Error("one more than there is room for has an address")
	}
	if usage, err = s.Usage("vpc-1"); err != nil || !slices.Equal(usage[0].Machines, want) {
		t.Errorf("%+v, %v", usage, err)
	}
}

// Ranges of pods take room from machines and from what counts as free; the range of a machine that is gone can be had
// again, and one that was given is kept whatever a later launch asks for.
func TestPodRanges(t *testing.T) {
	subnets := []machine.Subnet{{ID: "subnet-1", VPC: "vpc-1", Zone: machinetest.Zone, CIDR: netip.MustParsePrefix("10.0.0.0/25")}}
	s, err := machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), Subnets: func() ([]machine.Subnet, error) { return subnets, nil }, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	launch := func(n, pods int) (machine.Record, error) {
		return s.Put("local", machine.LaunchRequest{ID: fmt.Sprintf("i-%017d", n), SubnetID: "subnet-1", Pods: pods})
	}
	look := func(room, free int) {
		t.Helper()
		usage, err := s.Usage("vpc-1")
		if err != nil || roomFor(usage[0], 29) != room || usage[0].Free() != free {
			t.Errorf("room for %d with %d free, %v; want %d with %d", roomFor(usage[0], 29), usage[0].Free(), err, room, free)
		}
	}
	look(3, 123)
	for n, want := range []string{"10.0.0.96/27", "10.0.0.64/27", "10.0.0.32/27"} {
		if record, err := launch(n, 29); err != nil || record.PodRange.String() != want || record.Instance(machine.Running).PodRange != record.PodRange {
			t.Fatalf("%+v, %v; want %s", record, err, want)
		}
		look(2-n, 123-32*(n+1)-n)
	}
	if record, err := launch(7, 29); !errors.Is(err, machine.ErrSubnetFull) {
		t.Errorf("one more: %+v, %v", record, err)
	}
	if record, err := launch(1, 110); err != nil || record.PodRange.String() != "10.0.0.64/27" {
		t.Errorf("once more: %+v, %v", record, err)
	}
	if err := s.Delete("i-00000000000000001"); err != nil {
		t.Fatal(err)
	}
	if record, err := launch(8, 17); err != nil || record.PodRange.String() != "10.0.0.64/27" || record.PrivateIP.String() != "10.0.0.5" {
		t.Errorf("after one is gone: %+v, %v", record, err)
	}
	if record, err := launch(9, 0); err != nil || record.PodRange.IsValid() {
		t.Errorf("without pods: %+v, %v", record, err)
	}
	for _, pods := range []int{-1, machine.MaxPods + 1} {
		if err := (machine.LaunchRequest{ID: "i-0000000000000000a", Pods: pods}).Validate(); err == nil {
			t.Errorf("%d pods are asked for", pods)
		}
	}
	for _, disk := range []int{-1, 16385} {
		if err := (machine.LaunchRequest{ID: "i-0000000000000000a", DiskSize: disk}).Validate(); err == nil {
			t.Errorf("a disk of %d GiB is asked for", disk)
		}
	}
}
