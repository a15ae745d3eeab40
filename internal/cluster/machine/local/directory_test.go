// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"testing"

	"muster.dev/muster/internal/cluster/machine"
	"muster.dev/muster/internal/cluster/machine/machinetest"
	"muster.dev/muster/internal/cluster/vpc"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/platform/statedir"
)

// An address belongs to the machine that has it now, not to one that had it; a machine of another provider is nobody who could ask.
func TestDirectory(t *testing.T) {
	dir, cidr := statedir.Dir(t.TempDir()), netip.MustParsePrefix(machinetest.VPC)
	network, err := vpc.New(vpc.Config{Dir: dir.VPC(), CIDR: cidr})
	if err != nil {
		t.Fatal(err)
	}
	store, err := machine.NewStore(machine.StoreConfig{Dir: dir.Machines(), VPC: cidr, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDirectory(dir, network, cidr)
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

// The key is the same in every life of the service, and nobody else's to read.
func TestMetadataKey(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	first, err := MetadataKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := MetadataKey(dir); err != nil || !bytes.Equal(first, again) {
		t.Errorf("it has changed: %v", err)
	}
	if info, err := os.Stat(dir.MetadataKey()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(dir.MetadataKey(), []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other, err := MetadataKey(dir); err != nil || len(other) != metadataKeySize {
		t.Errorf("a key that was cut short is kept: %d bytes, %v", len(other), err)
	}
}
