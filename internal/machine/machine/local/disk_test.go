// SPDX-License-Identifier: Apache-2.0

// These tests make real machines: they need root, and the programs that make build builds.

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/sparsedisk"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
)

// isolating is a provider whose machines can have ids of their own, from the n-th range of a test's on.
func (s *site) isolating(t *testing.T, n uint32) *Provider {
	t.Helper()
	c := config(s.dir, s.binDir)
	c.IDs = func() (userns.IDs, error) { return userns.IDs{First: 1<<29 + n<<20, Count: 4 << 16}, nil }
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rootOf is the root directory of a machine that runs.
func (p *Provider) rootOf(t *testing.T, id string) string {
	t.Helper()
	pid, running, err := p.find(id)
	if err != nil || !running {
		t.Fatalf("machine does not run: %v", err)
	}
	return filepath.Join("/proc", strconv.Itoa(pid), "root")
}

func mustLaunch(t *testing.T, p *Provider, request machine.LaunchRequest) {
	t.Helper()
	if _, err := p.Launch(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

// A machine of either kind has a disk of its size, on which it runs what it likes and the host runs nothing.
func TestDisk(t *testing.T) {
	s := newSite(t)
	p := s.isolating(t, 3)
	for id, own := range map[string]bool{machinetest.First: true, machinetest.Second: false} {
		asked := map[bool]int{true: 30, false: 0}[own]
		diskSize := int64(map[bool]int{true: 30, false: machine.DefaultDiskSize}[own]) << 30
		mustLaunch(t, p, machine.LaunchRequest{ID: id, UserData: []byte("none"), OwnIDs: own, DiskSize: asked})
		mustLaunch(t, p, machine.LaunchRequest{ID: id, UserData: []byte("none"), OwnIDs: own, DiskSize: 50}) // which runs already
		if got, err := p.Get(t.Context(), id); err != nil || int64(got.DiskSize)<<30 != diskSize {
			t.Errorf("its disk is said to have %d GiB, %v", got.DiskSize, err)
		}
		for path, want := range map[string]uint64{
			p.rootOf(t, id): map[bool]uint64{true: unix.ST_NODEV, false: 0}[own],
			filepath.Join(s.dir.Machine(id), rootDir): unix.ST_NODEV | unix.ST_NOSUID | unix.ST_NOEXEC,
		} {
			var stat unix.Statfs_t
			if err := unix.Statfs(path, &stat); err != nil {
				t.Fatal(err)
			}
			if got := uint64(stat.Flags) & (unix.ST_NODEV | unix.ST_NOSUID | unix.ST_NOEXEC); got != want {
				t.Errorf("with ids of its own %v: %s has the flags %#x, want %#x", own, path, got, want)
			}
			if size := int64(stat.Blocks) * stat.Bsize; size > diskSize || size < diskSize*95/100 {
				t.Errorf("%s has room for %d bytes", path, size)
			}
		}
		if taken, err := sparsedisk.Written(s.dir.MachineDisk(id)); err != nil || taken > 64<<20 {
			t.Errorf("the file takes %d bytes, %v", taken, err)
		}
	}
	if count, err := UnboundedDisks(s.dir); err != nil || count != 0 {
		t.Errorf("%d machines may fill the host's disk, %v", count, err)
	}
	if err := Discard(context.WithoutCancel(t.Context()), s.dir, p.cgroups, machinetest.First); err != nil {
		t.Fatal(err)
	}
	if mounted, err := sparsedisk.Mounted(filepath.Join(s.dir.Machine(machinetest.First), rootDir)); err != nil || mounted {
		t.Errorf("a machine that was discarded has its disk mounted: %v", err)
	}
}

// Wherever a boot before was cut short, the machine boots with what was on its disk.
func TestDiskGoesOn(t *testing.T) {
	s := newSite(t)
	p := s.isolating(t, 4)
	id := machinetest.First
	request := machine.LaunchRequest{ID: id, UserData: []byte("none"), OwnIDs: true}
	file, at := s.dir.MachineDisk(id), filepath.Join(s.dir.Machine(id), rootDir)
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", []byte("half"), 0o600); err != nil { // of mkfs
		t.Fatal(err)
	}
	mustLaunch(t, p, request)
	if err := os.WriteFile(filepath.Join(at, "home/kept"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cut := range map[string]func() error{
		"power loss":   func() error { return nil },
		"host reboots": func() error { return ReleaseDisk(s.dir, id) },
		"cut before the mount": func() error {
			if err := ReleaseDisk(s.dir, id); err != nil {
				return err
			}
			disk, err := os.OpenFile(file, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, held, err := loopdevice.Hold(disk, diskName(id))
			return errors.Join(err, held.Close(), disk.Close())
		},
		"used by somebody": func() error {
			dir, err := os.Open(at)
			if err == nil {
				t.Cleanup(func() { _ = dir.Close() })
			}
			return err
		},
	} {
		pid, _, err := p.find(id)
		if err := errors.Join(err, endProcess(t.Context(), pid, 0), cut()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		mustLaunch(t, p, request)
		if got := maybeRead(filepath.Join(p.rootOf(t, id), "home/kept")); got != "kept" {
			t.Errorf("%s: on the disk is %q", name, got)
		}
	}
}

// A machine that was lent a device opens it no more when another's disk has its number.
func TestDiskTakesNumber(t *testing.T) {
	s := newSite(t)
	p := s.isolating(t, 7)
	at := filepath.Join(s.dir.Machine(machinetest.First), rootDir)
	mustLaunch(t, p, machine.LaunchRequest{ID: machinetest.First, UserData: []byte("none"), OwnIDs: true})
	var disk unix.Stat_t
	if err := unix.Stat(at, &disk); err != nil {
		t.Fatal(err)
	}
	lentTo := p.lentTo(machinetest.Second)
	if err := os.MkdirAll(lentTo, 0o700); err != nil {
		t.Fatal(err)
	}
	node, _, err := lend(lentTo, lentLoop(int(unix.Minor(disk.Dev))), disk.Dev, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = node.Close()
	if err := p.withdrawDisk(at); err != nil {
		t.Fatal(err)
	}
	if left, err := lentIn(lentTo); err != nil || len(left) > 0 {
		t.Errorf("still lent: %v, %v", left, err)
	}
}

// A machine of before keeps its directory. So does a new one where the host cannot make disks, and nowhere else.
func TestDirectoryInPlaceOfADisk(t *testing.T) {
	s := newSite(t)
	p := s.isolating(t, 5)
	id := machinetest.First
	home := filepath.Join(s.dir.Machine(id), rootDir, "home")
	if err := errors.Join(os.MkdirAll(home, 0o755), os.WriteFile(filepath.Join(home, "kept"), []byte("kept"), 0o644)); err != nil {
		t.Fatal(err)
	}
	mustLaunch(t, p, machine.LaunchRequest{ID: id, UserData: []byte("none"), OwnIDs: true})
	if got := maybeRead(filepath.Join(p.rootOf(t, id), "home/kept")); got != "kept" {
		t.Errorf("on the disk is %q", got)
	}
	if _, err := os.Lstat(s.dir.MachineDisk(id)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has a disk: %v", err)
	}
	if count, err := UnboundedDisks(s.dir); err != nil || count != 1 {
		t.Errorf("%d machines may fill the host's disk, %v", count, err)
	}
	if err := p.unbounded(id, fmt.Errorf("mounting: %w", sparsedisk.ErrUnsupported)); err != nil {
		t.Errorf("a host without disks: %v", err)
	}
	if err := p.unbounded(id, unix.EIO); err == nil {
		t.Error("a disk that fails is none")
	}
}

func TestUnboundedDisksOfNothing(t *testing.T) {
	t.Parallel()
	if count, err := UnboundedDisks(statedir.Dir(filepath.Join(t.TempDir(), "none"))); err != nil || count != 0 {
		t.Errorf("%d, %v", count, err)
	}
}
