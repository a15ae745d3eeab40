// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// File systems of the ids end, and no other's.
func TestEndFUSE(t *testing.T) {
	of := IDs{First: 1<<28 + 1<<20, Count: 1 << 16}
	ended := map[uint32]bool{of.First: true, of.First + of.Count - 1: true, of.First - 1: false, of.First + of.Count: false}
	connections := map[uint32]int{}
	for id := range ended {
		connection, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Skip(err)
		}
		dir := t.TempDir()
		if err := unix.Mount("test", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=0", connection, id)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH), unix.Close(connection)) })
		if _, err := unix.Read(connection, make([]byte, 1<<16)); err != nil {
			t.Fatal(err)
		}
		connections[id] = connection
	}
	if n, err := (IDs{}).EndFUSE(); n != 0 || err != nil {
		t.Error(n, err)
	}
	if n, err := of.EndFUSE(); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	for id, connection := range connections {
		if _, err := unix.Read(connection, make([]byte, 1<<16)); errors.Is(err, unix.EAGAIN) == ended[id] {
			t.Errorf("of user %d: %v, ended should be %t", id, err, ended[id])
		}
	}
}

func TestOf(t *testing.T) {
	if ids, err := Of(os.Getpid()); err != nil || ids.Own() {
		t.Errorf("of this process: %v, %v", ids, err)
	}
	if _, err := Of(1 << 30); err == nil {
		t.Error("of no process")
	}
}
