// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"muster.dev/muster/internal/cluster/machine"
	"muster.dev/muster/internal/cluster/machine/machinetest"
)

// A subnet has room for as many machines as get addresses in it, endpoints of clusters beside them, and another VPC's machines take none.
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
	if err != nil || len(usage) != 1 || usage[0].ID != "subnet-1" || len(usage[0].Machines) != 0 || usage[0].Room() != 10 {
		t.Fatalf("%+v, %v", usage, err)
	}
	var want []string
	for n := range usage[0].Room() {
		want = append(want, fmt.Sprintf("i-%017d", n))
		if _, err := s.Put("local", machine.LaunchRequest{ID: want[n], SubnetID: "subnet-1"}); err != nil {
			t.Fatalf("machine %d of %d: %v", n, usage[0].Room(), err)
		}
	}
	if _, err := s.Put("local", machine.LaunchRequest{ID: "i-00000000000000099", SubnetID: "subnet-1"}); err == nil {
		t.Error("one more than there is room for has an address")
	}
	if usage, err = s.Usage("vpc-1"); err != nil || !slices.Equal(usage[0].Machines, want) {
		t.Errorf("%+v, %v", usage, err)
	}
}
