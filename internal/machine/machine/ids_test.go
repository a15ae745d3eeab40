// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/userns"
)

// Machines with user namespaces share no ids, and those of one that is gone are the next one's. One without keeps the
// host's.
func TestMachinesShareNoIDs(t *testing.T) {
	config := machine.StoreConfig{Dir: t.TempDir(), Subnets: machinetest.Subnets, Region: machinetest.Region()}
	config.IDs = func() (userns.IDs, error) { return userns.IDs{First: 1 << 20, Count: 3 << 16}, nil }
	s, err := machine.NewStore(config)
	if err != nil {
		t.Fatal(err)
	}
	nth := func(n int) string { return fmt.Sprintf("i-%017x", n) }
	put := func(n int, own bool) (userns.IDs, error) {
		record, err := s.Put("local", machine.LaunchRequest{ID: nth(n), OwnIDs: own})
		return record.IDs, err
	}
	if got, err := put(1, true); err != nil || got != (userns.IDs{First: 1 << 20, Count: 1 << 16}) {
		t.Errorf("the first has %v: %v", got, err)
	}
	if got, err := put(2, false); err != nil || got.Own() {
		t.Errorf("a machine without a user namespace has %v: %v", got, err)
	}
	if got, err := put(3, true); err != nil || got.First != 1<<20+1<<16 {
		t.Errorf("the second has %v: %v", got, err)
	}
	if got, err := put(4, true); err != nil || got.First != 1<<20+2<<16 {
		t.Errorf("the third has %v: %v", got, err)
	}
	if _, err := put(5, true); err == nil || !strings.Contains(err.Error(), "all 196608 that are reserved from 1048576 on are in use") {
		t.Errorf("a fourth: %v", err)
	}
	if got, err := put(3, false); err != nil || got.First != 1<<20+1<<16 {
		t.Errorf("launched again without, it has %v: %v", got, err)
	}
	if got, err := s.GiveIDs(nth(3)); err != nil || got.IDs.First != 1<<20+1<<16 {
		t.Errorf("one that has ids is given %v: %v", got.IDs, err)
	}
	if _, err := s.GiveIDs(nth(2)); err == nil || !strings.Contains(err.Error(), "are in use") {
		t.Errorf("given where none is left: %v", err)
	}
	if _, err := s.GiveIDs(nth(9)); !errors.Is(err, machine.ErrNotFound) {
		t.Errorf("given to none: %v", err)
	}
	if err := s.Delete(nth(1)); err != nil {
		t.Fatal(err)
	}
	if got, err := put(6, true); err != nil || got.First != 1<<20 {
		t.Errorf("after one is gone: %v, %v", got, err)
	}
	if err := s.Delete(nth(4)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.GiveIDs(nth(2)); err != nil || got.IDs.First != 1<<20+2<<16 {
		t.Errorf("one without is given %v: %v", got.IDs, err)
	}
	if got, err := s.Get("local", nth(2)); err != nil || got.IDs.First != 1<<20+2<<16 {
		t.Errorf("and has %v: %v", got.IDs, err)
	}
	none := errors.New("the host has none left")
	config.Dir, config.IDs = t.TempDir(), func() (userns.IDs, error) { return userns.IDs{}, none }
	if s, err = machine.NewStore(config); err != nil {
		t.Fatal(err)
	}
	if _, err := put(1, true); !errors.Is(err, none) {
		t.Errorf("where none can be reserved: %v", err)
	}
	if _, err := store(t, t.TempDir()).Put("local", machine.LaunchRequest{ID: nth(1), OwnIDs: true}); err == nil || !strings.Contains(err.Error(), "no ids of this host are reserved") {
		t.Errorf("where nobody reserves any: %v", err)
	}
}
