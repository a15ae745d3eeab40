// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
)

const id = "i-00000000000000001"

func store(t *testing.T, dir string) *machine.Store {
	t.Helper()
	s, err := machine.NewStore(machine.StoreConfig{Dir: dir, Subnets: machinetest.Subnets, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A new machine gets no address whose name a Node has. A machine keeps the address that it has.
func TestAddressesThatAreAvoided(t *testing.T) {
	s := store(t, filepath.Join(t.TempDir(), "machines"))
	const other = "i-0123456789abcdef1"
	first, err := s.Put("local", machine.LaunchRequest{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	next := first.PrivateIP.Next()
	second, err := s.Put("local", machine.LaunchRequest{ID: other, Avoid: []netip.Addr{next}})
	if err != nil || second.PrivateIP != next.Next() {
		t.Errorf("the machine has %s, %v; %s is to be avoided", second.PrivateIP, err, next)
	}
	if again, err := s.Put("local", machine.LaunchRequest{ID: other, Avoid: []netip.Addr{second.PrivateIP}}); err != nil || again.PrivateIP != second.PrivateIP {
		t.Errorf("launched again, the machine has %s, %v", again.PrivateIP, err)
	}
	for name, want := range map[string]string{
		second.PrivateDNSName: second.PrivateIP.String(), "fargate-" + first.PrivateDNSName: first.PrivateIP.String(), "ip-10-0-0-7": "10.0.0.7",
		"": "", "node-1": "", "ip-10-0-0": "", "ip-10-0-0-700.ec2.internal": "", "10-0-0-7.ec2.internal": "",
	} {
		if got, ok := machine.AddressOfName(name); ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q is of %s, %v; want %q", name, got, ok, want)
		}
	}
}

// Everything that may hold a token is private to its owner.
func TestStoreIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "machines")
	if _, err := store(t, dir).Put("local", machine.LaunchRequest{ID: id, UserData: []byte("token")}); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A second provider in the same directory takes no addresses twice, and sees its own machines only.
func TestProvidersShareAddresses(t *testing.T) {
	s := store(t, t.TempDir())
	first, err := s.Put("local", machine.LaunchRequest{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Put("simulated", machine.LaunchRequest{ID: "i-00000000000000002"})
	if err != nil {
		t.Fatal(err)
	}
	if first.PrivateIP == second.PrivateIP {
		t.Errorf("both have %s", first.PrivateIP)
	}
	if _, err := s.Get("simulated", id); !errors.Is(err, machine.ErrNotFound) {
		t.Errorf("the other's machine: %v, want ErrNotFound", err)
	}
	if records, err := s.List("simulated"); err != nil || len(records) != 1 || records[0].ID != second.ID {
		t.Errorf("List is %v, %v", records, err)
	}
	if _, err := s.Put("simulated", machine.LaunchRequest{ID: id}); err == nil {
		t.Error("a machine changed its provider")
	}
}

// A launch that was cut short before the record was written leaves a directory, which is no machine and can be removed.
func TestHalfWritten(t *testing.T) {
	dir := t.TempDir()
	s := store(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, id, "root"), 0o700); err != nil {
		t.Fatal(err)
	}
	if records, err := s.List("local"); err != nil || len(records) != 0 {
		t.Errorf("List is %v, %v", records, err)
	}
	if err := s.Delete(id); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Path(id)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// A record that cannot be read is named, since its address must not be given away.
func TestDamagedRecord(t *testing.T) {
	dir := t.TempDir()
	s := store(t, dir)
	if _, err := s.Put("local", machine.LaunchRequest{ID: id}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, id, machine.RecordFile)
	if err := os.WriteFile(path, []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store(t, dir).Put("local", machine.LaunchRequest{ID: "i-00000000000000002"}); err == nil { // a process that never knew the address
		t.Error("an address was assigned although one record cannot be read")
	}
	if err := s.Delete(id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("local", machine.LaunchRequest{ID: "i-00000000000000002"}); err != nil {
		t.Error(err)
	}
}

// One damaged record keeps no other machine from being read and booted again, and each error about it names its file.
func TestDamagedRecordOfAnother(t *testing.T) {
	dir := t.TempDir()
	s := store(t, dir)
	const other, simulated, next = "i-00000000000000002", "i-00000000000000003", "i-00000000000000004"
	for id, provider := range map[string]string{id: "local", other: "local", simulated: "simulated"} {
		if _, err := s.Put(provider, machine.LaunchRequest{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, id, machine.RecordFile)
	for _, content := range []string{"", `{"id":`, `{"id":"` + id + `"}`, `{"id":"` + other + `","privateIP":"192.168.64.4","privateDNSName":"a","zone":"b"}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		named := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, machine.ErrDamaged) || !strings.Contains(err.Error(), filepath.Join(dir, id)) || !strings.Contains(err.Error(), "terminate the machine") {
				t.Errorf("%q: %s: %v", content, what, err)
			}
		}
		for provider, want := range map[string]string{"local": other, "simulated": simulated} {
			records, err := s.List(provider)
			named("List", err)
			if len(records) != 1 || records[0].ID != want {
				t.Errorf("%q: the machines of %s are %+v", content, provider, records)
			}
			if _, err := s.Put(provider, machine.LaunchRequest{ID: want}); err != nil {
				t.Errorf("%q: booting %s again: %v", content, want, err)
			}
		}
		if ids, err := s.IDs(); err != nil || !slices.Equal(ids, []string{id, other, simulated}) {
			t.Errorf("the ids are %q, %v", ids, err)
		}
		_, err := s.Get("local", id)
		named("Get", err)
		// Its address is taken, and nobody knows which it is.
		_, err = store(t, dir).Put("local", machine.LaunchRequest{ID: next})
		named("Put", err)
		named("Locked", s.Locked(func([]machine.Record) error { return nil }))
		_, err = s.Usage(machinetest.VPCID)
		named("Usage", err)
	}
	if err := s.Delete(id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("local", machine.LaunchRequest{ID: next}); err != nil {
		t.Error(err)
	}
}

// A record says where the machine is; one that does not is of no use to anybody.
func TestRecordSaysWhere(t *testing.T) {
	dir := t.TempDir()
	s := store(t, dir)
	record, err := s.Put("local", machine.LaunchRequest{ID: id})
	if err != nil || record.Region != "ap-test-1" || record.Zone != machinetest.Zone || record.ZoneID != machinetest.ZoneID || record.Domain != machinetest.Domain {
		t.Errorf("%+v, %v", record, err)
	}
	path := filepath.Join(dir, id, machine.RecordFile)
	if err := os.WriteFile(path, []byte(`{"id":"`+id+`","privateIP":"192.168.64.11","privateDNSName":"ip-192-168-64-11.ec2.internal"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := machine.ReadRecord(path); err == nil || !strings.Contains(err.Error(), "lacks an address, a name or a zone") {
		t.Errorf("a record without a zone: %v", err)
	}
}

// A zone that is not the region's has no id, and nodes there would say wrong things of themselves.
func TestSubnetOutsideOfTheRegion(t *testing.T) {
	dir := t.TempDir()
	elsewhere := machine.Subnet{ID: "subnet-1", VPC: "vpc-1", Zone: "us-east-1a", CIDR: netip.MustParsePrefix("10.0.0.0/24")}
	s, err := machine.NewStore(machine.StoreConfig{Dir: dir, Subnets: func() ([]machine.Subnet, error) { return []machine.Subnet{elsewhere}, nil }, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	if record, err := s.Put("local", machine.LaunchRequest{ID: id}); err == nil || !strings.Contains(err.Error(), `the zone of the subnet subnet-1: "us-east-1a" is not a zone of ap-test-1`) {
		t.Errorf("got %+v, %v", record, err)
	}
	if records, err := s.List("local"); err != nil || len(records) > 0 {
		t.Errorf("left: %v, %v", records, err)
	}
}

func TestStoreNeedsARegion(t *testing.T) {
	if _, err := machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), Subnets: machinetest.Subnets}); err == nil || !strings.Contains(err.Error(), "need a region") {
		t.Errorf("got %v", err)
	}
}

// Addresses are of a subnet of a VPC: two VPCs with one range have the same ones, and a machine stays where it was
// launched.
func TestAddressesAreOfAVPC(t *testing.T) {
	small := netip.MustParsePrefix("10.0.0.0/28")
	subnets := []machine.Subnet{
		{ID: "subnet-1a", VPC: "vpc-1", Zone: "ap-test-1a", CIDR: small, Taken: []netip.Addr{netip.MustParseAddr("10.0.0.4")}},
		{ID: "subnet-1b", VPC: "vpc-1", Zone: "ap-test-1b", CIDR: netip.MustParsePrefix("10.0.0.16/28")},
		{ID: "subnet-2a", VPC: "vpc-2", Zone: "ap-test-1a", CIDR: small},
	}
	s, err := machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), Subnets: func() ([]machine.Subnet, error) { return subnets, nil }, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	launch := func(n int, subnet string) (machine.Record, error) {
		return s.Put("local", machine.LaunchRequest{ID: fmt.Sprintf("i-%017x", n), SubnetID: subnet, Cluster: "one"})
	}
	for n, want := range []struct{ subnet, vpc, address string }{
		{"subnet-1a", "vpc-1", "10.0.0.5"}, {"subnet-2a", "vpc-2", "10.0.0.4"}, {"subnet-2a", "vpc-2", "10.0.0.5"}, {"subnet-1b", "vpc-1", "10.0.0.20"},
	} {
		for range 2 {
			record, err := launch(n, want.subnet)
			if err != nil || record.PrivateIP.String() != want.address || record.VPC != want.vpc || record.Subnet != want.subnet || record.Cluster != "one" {
				t.Errorf("in %s: %+v, %v; want %s", want.subnet, record, err, want.address)
			}
		}
	}
	if record, err := launch(0, "subnet-1b"); err != nil || record.Subnet != "subnet-1a" {
		t.Errorf("a machine moved to %+v, %v", record, err)
	}
	if _, err := launch(9, "subnet-3"); err == nil || !strings.Contains(err.Error(), "there is no subnet subnet-3") {
		t.Errorf("in a subnet that is not there: %v", err)
	}

	// The rest of the first subnet, and then the next one where none is named.
	for n := 10; n < 19; n++ {
		if _, err := launch(n, "subnet-1a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := launch(20, "subnet-1a"); !errors.Is(err, machine.ErrSubnetFull) {
		t.Errorf("in a full subnet: %v", err)
	}
	if record, err := launch(21, ""); err != nil || record.Subnet != "subnet-1b" || record.Zone != "ap-test-1b" || record.ZoneID != "apt1-az2" {
		t.Errorf("anywhere: %+v, %v", record, err)
	}
}

// What is reserved for an endpoint is an address of each subnet, which no machine has and none gets.
func TestReserve(t *testing.T) {
	subnets := []machine.Subnet{
		{ID: "subnet-a", VPC: "vpc-1", Zone: machinetest.Zone, CIDR: netip.MustParsePrefix("10.0.0.0/24")}, {ID: "subnet-b", VPC: "vpc-1", Zone: machinetest.Zone, CIDR: netip.MustParsePrefix("10.0.1.0/24")},
	}
	s, err := machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), Subnets: func() ([]machine.Subnet, error) { return subnets, nil }, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("local", machine.LaunchRequest{ID: id, SubnetID: "subnet-a"}); err != nil {
		t.Fatal(err)
	}
	var got []netip.Addr
	keep := func(addresses []netip.Addr) error {
		got = addresses
		for i := range subnets {
			subnets[i].Taken = append(subnets[i].Taken, addresses[i])
		}
		return nil
	}
	if err := s.Reserve([]string{"subnet-a", "subnet-b"}, keep); err != nil || len(got) != 2 || got[0].String() != "10.0.0.5" || got[1].String() != "10.0.1.4" {
		t.Errorf("reserved %v, %v", got, err)
	}
	if record, err := s.Put("local", machine.LaunchRequest{ID: "i-00000000000000002"}); err != nil || record.PrivateIP.String() != "10.0.0.6" {
		t.Errorf("the next machine: %+v, %v", record, err)
	}
	for _, ids := range [][]string{{"subnet-a", "subnet-a"}, {"subnet-a", "subnet-c"}, {""}} {
		if err := s.Reserve(ids, keep); err == nil {
			t.Errorf("addresses in %q were reserved", ids)
		}
	}
	if err := s.Reserve([]string{"subnet-a"}, func([]netip.Addr) error { return errors.New("disk full") }); err == nil {
		t.Error("addresses that could not be kept were reserved")
	}
}
