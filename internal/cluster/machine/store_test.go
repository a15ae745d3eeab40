// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/cluster/machine"
	"muster.dev/muster/internal/cluster/machine/machinetest"
)

const id = "i-00000000000000001"

func store(t *testing.T, dir string) *machine.Store {
	t.Helper()
	s, err := machine.NewStore(machine.StoreConfig{Dir: dir, VPC: netip.MustParsePrefix("192.168.64.0/18"), Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	return s
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
	if _, err := s.Put("local", machine.LaunchRequest{ID: "i-00000000000000002"}); err == nil {
		t.Error("an address was assigned although one record cannot be read")
	}
	if err := s.Delete(id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("local", machine.LaunchRequest{ID: "i-00000000000000002"}); err != nil {
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

func TestStoreNeedsARegion(t *testing.T) {
	if _, err := machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), VPC: netip.MustParsePrefix(machinetest.VPC)}); err == nil || !strings.Contains(err.Error(), "need a region") {
		t.Errorf("got %v", err)
	}
}
