// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
)

// of is a subnet of a VPC in one of the region's zones, ap-test-1a to c.
func of(id, zone, cidr string) machine.Subnet {
	return machine.Subnet{ID: id, VPC: "vpc-1", Zone: "ap-test-1" + zone, CIDR: netip.MustParsePrefix(cidr)}
}

// twoZones have a subnet for machines each, and some for pods.
func twoZones() []machine.Subnet {
	foreign := of("foreign", "a", "10.0.2.0/26")
	foreign.VPC = "vpc-2"
	return []machine.Subnet{
		of("a", "a", "10.0.0.0/24"), of("b", "b", "10.0.1.0/28"), of("c", "c", "10.0.8.0/24"),
		of("pods-a", "a", "10.0.2.0/26"), of("more-a", "a", "10.0.3.0/26"), of("pods-b", "b", "10.0.4.0/24"), foreign,
	}
}

func TestRoom(t *testing.T) {
	for name, test := range map[string]struct {
		subnet string
		pods   int
		among  []string
		used   []string
		want   string // address, range and its subnet
		is     error
		says   string
	}{
		"no pods":                     {subnet: "a", among: []string{"pods-a"}, want: "10.0.0.4 invalid Prefix "},
		"the machine's own":           {subnet: "a", pods: 29, want: "10.0.0.4 10.0.0.224/27 a"},
		"another subnet":              {subnet: "a", pods: 29, among: []string{"pods-a"}, want: "10.0.0.4 10.0.2.32/27 pods-a"},
		"that of its zone":            {subnet: "b", pods: 29, among: []string{"pods-a", "pods-b"}, want: "10.0.1.4 10.0.4.224/27 pods-b"},
		"larger than the machine's":   {subnet: "b", pods: 110, among: []string{"pods-b"}, want: "10.0.1.4 10.0.4.128/25 pods-b"},
		"the first one named":         {subnet: "a", pods: 29, among: []string{"more-a", "pods-a"}, want: "10.0.0.4 10.0.3.32/27 more-a"},
		"the one with room":           {subnet: "a", pods: 29, among: []string{"pods-a", "more-a"}, used: []string{"10.0.2.32/27"}, want: "10.0.0.4 10.0.3.32/27 more-a"},
		"what others have of it":      {subnet: "a", pods: 13, among: []string{"pods-a"}, used: []string{"10.0.2.63/32"}, want: "10.0.0.4 10.0.2.32/28 pods-a"},
		"its own after another":       {subnet: "a", pods: 29, among: []string{"pods-a", "a"}, used: []string{"10.0.2.40/32"}, want: "10.0.0.4 10.0.0.224/27 a"},
		"a full one":                  {subnet: "a", pods: 29, among: []string{"pods-a"}, used: []string{"10.0.2.40/32"}, is: machine.ErrPodsFull, says: "(pods-a, 10.0.2.0/26): no /27 of it is left"},
		"two full ones":               {subnet: "a", pods: 110, among: []string{"pods-a", "more-a"}, is: machine.ErrSubnetFull, says: "(more-a, 10.0.3.0/26): no /25"},
		"no address beside":           {subnet: "b", pods: 29, among: []string{"pods-b"}, used: []string{"10.0.1.0/28"}, is: machine.ErrSubnetFull, says: "(b, 10.0.1.0/28): delete machines"},
		"none in the zone":            {subnet: "c", pods: 29, among: []string{"pods-a", "pods-b"}, is: machine.ErrNoPodSubnet, says: "in the zone ap-test-1c of the subnet c"},
		"one that is gone":            {subnet: "a", pods: 29, among: []string{"gone"}, is: machine.ErrNoPodSubnet, says: "ap-test-1a"},
		"of another VPC":              {subnet: "a", pods: 29, among: []string{"foreign"}, is: machine.ErrNoPodSubnet, says: "ap-test-1a"},
		"no such subnet for machines": {subnet: "gone", pods: 29, among: []string{"pods-a"}, says: "there is no subnet gone"},
	} {
		t.Run(name, func(t *testing.T) {
			var usage []machine.Usage
			for _, s := range twoZones() {
				usage = append(usage, machine.Usage{Subnet: s, Used: prefixes(test.used...)})
			}
			grant, err := machine.NewRoom(usage).Take(machine.Demand{SubnetID: test.subnet, Pods: test.pods, PodSubnetIDs: test.among})
			if test.says != "" {
				if errors.Is(err, machine.ErrPodsFull) != strings.Contains(err.Error(), "no /") {
					t.Errorf("what is full: %v", err)
				}
				if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n") || grant != (machine.Grant{}) {
					t.Errorf("got %+v, %v; want %q", grant, err, test.says)
				}
				return
			}
			if got := fmt.Sprintf("%s %s %s", grant.Address, grant.PodRange, grant.PodSubnetID); err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// Whatever machines come, with pods in one subnet or another: each has an address of its own subnet and a range of one
// for pods in its zone, no two overlap, and a machine that gets nothing takes nothing from those after it.
func TestRoomProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var usage []machine.Usage
		cidrs := map[string]machine.Subnet{}
		for _, s := range twoZones()[:6] {
			usage = append(usage, machine.Usage{Subnet: s})
			cidrs[s.ID] = s
		}
		room := machine.NewRoom(usage)
		var given []netip.Prefix
		for range rapid.IntRange(1, 60).Draw(t, "machines") {
			d := machine.Demand{
				SubnetID:     rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "subnet"),
				Pods:         rapid.SampledFrom([]int{0, 1, 13, 29, 110}).Draw(t, "pods"),
				PodSubnetIDs: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"pods-a", "more-a", "pods-b", "a", "b"}), func(id string) string { return id }).Draw(t, "among"),
			}
			grant, err := room.Take(d)
			fresh := slices.Clone(usage)
			for i := range fresh {
				fresh[i].Used = given
			}
			if again, errAgain := machine.NewRoom(fresh).Take(d); again != grant || (err == nil) != (errAgain == nil) {
				t.Fatalf("%+v beside %v: %+v, %v; from what was given alone %+v, %v", d, given, grant, err, again, errAgain)
			}
			if err != nil {
				if !errors.Is(err, machine.ErrSubnetFull) && !errors.Is(err, machine.ErrNoPodSubnet) {
					t.Fatal(err)
				}
				continue
			}
			own := []netip.Prefix{netip.PrefixFrom(grant.Address, 32)}
			if !cidrs[d.SubnetID].CIDR.Contains(grant.Address) {
				t.Fatalf("%+v has %s", d, grant.Address)
			}
			if grant.PodRange.IsValid() != (d.Pods > 0) {
				t.Fatalf("%+v has %s", d, grant.PodRange)
			}
			if d.Pods > 0 {
				of := cidrs[grant.PodSubnetID]
				if !of.CIDR.Contains(grant.PodRange.Addr()) || grant.PodRange.Bits() < of.CIDR.Bits() || grant.PodRange.Overlaps(netip.PrefixFrom(of.CIDR.Addr(), 30)) || of.Zone != cidrs[d.SubnetID].Zone {
					t.Fatalf("%+v has %s of %s", d, grant.PodRange, of.ID)
				}
				if len(d.PodSubnetIDs) > 0 && !slices.Contains(d.PodSubnetIDs, of.ID) || len(d.PodSubnetIDs) == 0 && of.ID != d.SubnetID {
					t.Fatalf("%+v has a range of %s", d, of.ID)
				}
				own = append(own, grant.PodRange)
			}
			for i, one := range own {
				if slices.ContainsFunc(append(slices.Clone(given), own[:i]...), one.Overlaps) {
					t.Fatalf("%s beside %v", one, given)
				}
			}
			given = append(given, own...)
		}
	})
}

// The record says which subnet a range of pods is of; it counts there and is free again when the machine is gone.
func TestPodRangesOfOtherSubnets(t *testing.T) {
	s, err := machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), Subnets: func() ([]machine.Subnet, error) { return twoZones(), nil }, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	launch := func(n int, subnet string) (machine.Record, error) {
		return s.Put("local", machine.LaunchRequest{ID: fmt.Sprintf("i-%017d", n), SubnetID: subnet, Pods: 29, PodSubnetIDs: []string{"pods-a", "pods-b"}})
	}
	free := func(id string, want int, machines, pods []string) {
		t.Helper()
		usage, err := s.Usage("vpc-1")
		at := slices.IndexFunc(usage, func(u machine.Usage) bool { return u.ID == id })
		if err != nil || usage[at].Free() != want || !slices.Equal(usage[at].Machines, machines) || !slices.Equal(usage[at].PodMachines, pods) {
			t.Errorf("%s: %+v with %d free, %v; want %d", id, usage[at], usage[at].Free(), err, want)
		}
	}
	const first = "i-00000000000000001"
	record, err := launch(1, "a")
	if err != nil || record.Subnet != "a" || record.PodSubnet != "pods-a" || record.PodRange.String() != "10.0.2.32/27" || record.PrivateIP.String() != "10.0.0.4" {
		t.Fatalf("%+v, %v", record, err)
	}
	if read, err := s.Get("local", first); err != nil || read != record {
		t.Errorf("it is read as %+v, %v", read, err)
	}
	if foreign, err := s.Put("local", machine.LaunchRequest{ID: "i-00000000000000009", SubnetID: "foreign", Pods: 29}); err != nil || foreign.PodRange != record.PodRange {
		t.Errorf("in a VPC with the same addresses: %+v, %v", foreign, err)
	}
	free("a", 250, []string{first}, nil)
	free("pods-a", 28, nil, []string{first}) // 64 without the first four and 32
	if _, err := launch(2, "a"); !errors.Is(err, machine.ErrSubnetFull) || !strings.Contains(err.Error(), "pods-a") {
		t.Errorf("a second one: %v", err)
	}
	if _, err := launch(3, "c"); !errors.Is(err, machine.ErrNoPodSubnet) {
		t.Errorf("where there is none for pods: %v", err)
	}
	if record, err := launch(4, "b"); err != nil || record.PodSubnet != "pods-b" || record.PodRange.String() != "10.0.4.224/27" {
		t.Errorf("in the other zone: %+v, %v", record, err)
	}
	if record, err := s.Put("local", machine.LaunchRequest{ID: "i-00000000000000005", SubnetID: "a", Pods: 29}); err != nil || record.PodSubnet != "" || !record.PodRange.IsValid() {
		t.Errorf("of its own subnet: %+v, %v", record, err)
	}
	if err := s.Delete(first); err != nil {
		t.Fatal(err)
	}
	if record, err := launch(2, "a"); err != nil || record.PodRange.String() != "10.0.2.32/27" {
		t.Errorf("after the first is gone: %+v, %v", record, err)
	}
}
