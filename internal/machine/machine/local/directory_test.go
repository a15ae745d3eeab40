// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/platform/statedir"
)

// An address belongs to the machine that has it now, not to one that had it; a machine of another provider is nobody
// who could ask.
func TestDirectory(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	describe(t, dir)
	store, err := machine.NewStore(machine.StoreConfig{Dir: dir.Machines(), Subnets: machinetest.Subnets, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDirectory(dir, machinetest.VPCID)
	if err != nil {
		t.Fatal(err)
	}
	put := func(provider string, request machine.LaunchRequest) netip.Addr {
		t.Helper()
		record, err := store.Put(provider, request)
		if err != nil {
			t.Fatal(err)
		}
		return record.PrivateIP
	}
	first := put(providerName, machine.LaunchRequest{ID: machinetest.First, UserData: []byte("one"), Type: "m5.large", HopLimit: 2})
	other := put("simulated", machine.LaunchRequest{ID: machinetest.Second, UserData: []byte("two")})

	for range 2 {
		found, err := d.Lookup(first)
		if err != nil || found.ID != machinetest.First || found.Type != "m5.large" || found.HopLimit != 2 || found.PrivateIP != first || !bytes.Equal(found.MAC, vpc.MAC(first)) {
			t.Errorf("got %+v, %v", found, err)
		}
		if err == nil && (found.Region != machinetest.Region().Name || found.Zone != machinetest.Zone || found.ZoneID != machinetest.ZoneID) {
			t.Errorf("it is in %q, %q, %q", found.Region, found.Zone, found.ZoneID)
		}
	}
	if _, err := d.Lookup(other); !errors.Is(err, imds.ErrNotFound) {
		t.Errorf("a simulated machine: %v", err)
	}
	if raw, err := d.UserData(machinetest.First); err != nil || string(raw) != "one" {
		t.Errorf("user data: %q, %v", raw, err)
	}
	if err := store.Delete(machinetest.First); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lookup(first); !errors.Is(err, imds.ErrNotFound) {
		t.Errorf("a machine that has gone: %v", err)
	}
	if _, err := d.UserData(machinetest.First); !errors.Is(err, imds.ErrNotFound) {
		t.Errorf("user data of a machine that has gone: %v", err)
	}
	if again := put(providerName, machine.LaunchRequest{ID: "i-0000000000000000c"}); again != first {
		t.Fatalf("the next machine has %s, not %s again", again, first)
	}
	found, err := d.Lookup(first)
	if err != nil || found.ID != "i-0000000000000000c" || found.Type != machine.DefaultType || found.HopLimit != 1 {
		t.Errorf("got %+v, %v", found, err)
	}
	if _, err := d.UserData("i-0000000000000000c"); !errors.Is(err, imds.ErrNotFound) {
		t.Errorf("a machine without user data: %v", err)
	}
}

// A machine whose record is damaged is not found, which is another error than that no machine has an address. Others are.
func TestDirectoryWithADamagedRecord(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	describe(t, dir)
	store, err := machine.NewStore(machine.StoreConfig{Dir: dir.Machines(), Subnets: machinetest.Subnets, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	var addresses []netip.Addr
	for _, id := range []string{machinetest.First, machinetest.Second} {
		record, err := store.Put(providerName, machine.LaunchRequest{ID: id, Cluster: "blue"})
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, record.PrivateIP)
	}
	if err := os.WriteFile(filepath.Join(dir.Machine(machinetest.First), machine.RecordFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := NewDirectory(dir, machinetest.VPCID)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := d.Lookup(addresses[1]); err != nil || found.ID != machinetest.Second {
		t.Errorf("the other: %+v, %v", found, err)
	}
	if _, err := d.Lookup(addresses[0]); !errors.Is(err, machine.ErrDamaged) || errors.Is(err, imds.ErrNotFound) {
		t.Errorf("the damaged one: %v", err)
	}
	if name, known, err := d.Cluster(addresses[0]); known || !errors.Is(err, machine.ErrDamaged) {
		t.Errorf("it is of the cluster %q: %v, %v", name, known, err)
	}
	if records, err := d.Machines(); !errors.Is(err, machine.ErrDamaged) || len(records) != 1 {
		t.Errorf("%+v, %v", records, err)
	}
}

// A pod's address is its machine's, and tells of which cluster the pod is; that of the machine itself is no pod's.
func TestClusterOfPod(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	describe(t, dir)
	store, err := machine.NewStore(machine.StoreConfig{Dir: dir.Machines(), Subnets: machinetest.Subnets, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	record, err := store.Put(providerName, machine.LaunchRequest{ID: machinetest.First, Cluster: "blue", Pods: 110})
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDirectory(dir, machinetest.VPCID)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[netip.Addr]string{record.PodRange.Addr().Next(): "blue", record.PrivateIP: "", record.PodRange.Addr().Prev(): "", netip.MustParseAddr("10.244.0.2"): ""} {
		if name, ok, err := d.ClusterOfPod(address); err != nil || ok != (want != "") || ok && name != want {
			t.Errorf("%s: %q, %v, %v, want %q", address, name, ok, err, want)
		}
	}
}

// Two VPCs with the same range: a machine is known by both, and what is asked in one concerns no machine of the other.
func TestDirectoryOfTwoVPCs(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	describe(t, dir)
	const elsewhere, subnet = "vpc-0000000000000000b", "subnet-0000000000000000b"
	cidr := netip.MustParsePrefix(machinetest.VPC)
	if err := vpc.Describe(dir.VPCs(), vpc.Description{ID: elsewhere, CIDR: cidr, Subnets: []vpc.Subnet{
		{ID: subnet, Zone: "ap-test-1b", CIDR: netip.MustParsePrefix("192.168.80.0/20")}, {ID: "subnet-0000000000000000c", Zone: "ap-test-1c", CIDR: netip.MustParsePrefix("192.168.64.0/20")},
	}}); err != nil {
		t.Fatal(err)
	}
	network, err := vpc.Open(dir.VPCs(), elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if err := network.SetEndpoint(vpc.Endpoint{
		Cluster: "two", Addresses: []netip.Addr{netip.MustParseAddr("192.168.80.4")}, APIServer: netip.MustParseAddrPort("127.0.0.1:6443"),
		EgressSocket: "/x", PodCIDR: netip.MustParsePrefix("10.244.0.0/16"),
	}); err != nil {
		t.Fatal(err)
	}
	store, err := machine.NewStore(machine.StoreConfig{Dir: dir.Machines(), Subnets: Subnets(dir), Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	const one, two, three = machinetest.First, machinetest.Second, "i-0000000000000000c"
	for id, request := range map[string]machine.LaunchRequest{
		one: {SubnetID: machinetest.SubnetID, Cluster: "one"}, two: {SubnetID: "subnet-0000000000000000c", Cluster: "two", Pods: 110}, three: {SubnetID: subnet, Cluster: "two"},
	} {
		request.ID = id
		if _, err := store.Put(providerName, request); err != nil {
			t.Fatal(err)
		}
	}
	servers := map[string]string{elsewhere: "https://192.168.80.4:443"}
	for vpcID, want := range map[string]map[string]string{
		machinetest.VPCID: {"192.168.64.4": one}, elsewhere: {"192.168.64.4": two, "192.168.79.130": two, "192.168.80.5": three},
	} {
		d, err := NewDirectory(dir, vpcID)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := d.Lookup(netip.MustParseAddr("192.168.64.4")); err != nil || found.APIServers[netip.MustParseAddrPort("127.0.0.1:6443")] != servers[vpcID] {
			t.Errorf("in %s the API servers are %v (%v)", vpcID, found.APIServers, err)
		}
		for range 2 {
			for _, address := range []string{"192.168.64.4", "192.168.79.130", "192.168.79.127", "192.168.80.4", "192.168.80.5"} {
				found, err := d.Lookup(netip.MustParseAddr(address))
				if want[address] == "" && !errors.Is(err, imds.ErrNotFound) || found.ID != want[address] || found.ID != "" && found.VPCID != vpcID {
					t.Errorf("%s in %s is %+v, %v; want %s", address, vpcID, found, err, want[address])
				}
				cluster, known, err := d.Cluster(netip.MustParseAddr(address))
				if wanted := map[string]string{one: "one", two: "two", three: "two"}[want[address]]; err != nil || cluster != wanted || known != (wanted != "") {
					t.Errorf("%s in %s is of cluster %q, %v, %v; want %q", address, vpcID, cluster, known, err, wanted)
				}
			}
		}
		if records, err := d.Machines(); err != nil || len(records) != map[string]int{machinetest.VPCID: 1, elsewhere: 2}[vpcID] {
			t.Errorf("machines of %s: %v, %v", vpcID, records, err)
		}
	}
	d, err := NewDirectory(dir, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := d.Lookup(netip.MustParseAddr("192.168.80.5")); err != nil || found.SubnetID != subnet || found.Subnet.String() != "192.168.80.0/20" || found.Network != cidr {
		t.Errorf("got %+v, %v", found, err)
	}
}

// describe describes the VPC of the suite.
func describe(t *testing.T, dir statedir.Dir) {
	t.Helper()
	cidr := netip.MustParsePrefix(machinetest.VPC)
	if err := vpc.Describe(dir.VPCs(), vpc.Description{
		ID: machinetest.VPCID, CIDR: cidr, Default: true, Subnets: []vpc.Subnet{{ID: machinetest.SubnetID, Zone: "ap-test-1a", CIDR: cidr}},
	}); err != nil {
		t.Fatal(err)
	}
}

// The key is the same in every life of the service, and nobody else's to read.
func TestMetadataKey(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	first, err := MetadataKey(dir, machinetest.VPCID)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := MetadataKey(dir, machinetest.VPCID); err != nil || !bytes.Equal(first, again) {
		t.Errorf("it has changed: %v", err)
	}
	if info, err := os.Stat(dir.MetadataKey(machinetest.VPCID)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(dir.MetadataKey(machinetest.VPCID), []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other, err := MetadataKey(dir, machinetest.VPCID); err != nil || len(other) != metadataKeySize {
		t.Errorf("a key that was cut short is kept: %d bytes, %v", len(other), err)
	}
}
