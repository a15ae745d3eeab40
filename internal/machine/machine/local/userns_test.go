// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
)

// Root on a machine with ids of its own is nobody on the host, and the machine runs containerd.
func TestUserNamespace(t *testing.T) {
	s := newSite(t)
	c := config(s.dir, s.binDir)
	c.IDs = func() (userns.IDs, error) { return userns.IDs{First: 1 << 29, Count: 4 << 16}, nil }
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	stop := s.serve(t)
	t.Cleanup(stop)
	if _, err := p.Launch(t.Context(), machine.LaunchRequest{ID: machinetest.First, UserData: userData(t), Type: "m5.large", OwnIDs: true}); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir.MachineLogs(machinetest.First), "node.log"))
		t.Fatalf("%v\n%s", err, log)
	}
	pid, running, err := p.find(machinetest.First)
	if err != nil || !running {
		t.Fatalf("machine does not run: %v", err)
	}
	if got := strings.Fields(read(t, filepath.Join("/proc", strconv.Itoa(pid), "uid_map"))); strings.Join(got, " ") != "0 536870912 65536" {
		t.Errorf("ids: %v", got)
	}
	eventually(t, "containerd answers", func() error {
		if log := read(t, filepath.Join(s.dir.MachineLogs(machinetest.First), "node.log")); !strings.Contains(log, "containerd answers") {
			return errors.New(log)
		}
		return nil
	})
	eventually(t, "the sandbox image is imported", func() error {
		_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "root/var/lib/muster/imported-pause"))
		return err
	})
	listener, err := p.Listen(machinetest.First, "/run/there/socket")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}

// A machine that was launched as the host's root has ids of its own from its next boot on. What it had left on its disk
// for that opens nothing.
func TestIsolatedFromTheNextBootOn(t *testing.T) {
	s := newSite(t)
	c := config(s.dir, s.binDir)
	c.IDs = func() (userns.IDs, error) { return userns.IDs{First: 1<<29 + 1<<20, Count: 4 << 16}, nil }
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	stop := s.serve(t)
	t.Cleanup(stop)
	request := machine.LaunchRequest{ID: machinetest.First, UserData: userData(t), Type: "m5.large"}
	launch := func(want bool) {
		t.Helper()
		instance, err := p.Launch(t.Context(), request)
		if err != nil || instance.OwnIDs != want {
			log, _ := os.ReadFile(filepath.Join(s.dir.MachineLogs(machinetest.First), "node.log"))
			t.Fatalf("has ids of its own: %v, want %v: %v\n%s", instance.OwnIDs, want, err, log)
		}
	}
	launch(false)
	disk := filepath.Join(s.dir.Machine(machinetest.First), rootDir)
	mark := filepath.Join(disk, agentData, "imported-pause")
	eventually(t, "the sandbox image is imported", func() error { _, err := os.Stat(mark); return err })
	if err := errors.Join(
		unix.Mknod(filepath.Join(disk, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
		os.Chmod(filepath.Join(disk, "null"), 0o666),
		os.WriteFile(filepath.Join(disk, imagesOnDisk, "left"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	request.OwnIDs = true
	launch(false) // it runs
	if err := p.Stop(t.Context(), machinetest.First); err != nil {
		t.Fatal(err)
	}
	launch(true)
	pid, running, err := p.find(machinetest.First)
	if err != nil || !running {
		t.Fatalf("machine does not run: %v", err)
	}
	if got := strings.Fields(read(t, filepath.Join("/proc", strconv.Itoa(pid), "uid_map"))); strings.Join(got, " ") != "0 537919488 65536" {
		t.Errorf("ids: %v", got)
	}
	if _, err := os.Stat(filepath.Join(disk, imagesOnDisk, "left")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("images unpacked by the host's root are there: %v", err)
	}
	if err := p.inside(machinetest.First, func(*visit) error {
		file, err := os.Open("/null")
		if err == nil {
			_ = file.Close()
		}
		return err
	}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a device file of before: %v", err)
	}
	eventually(t, "the sandbox image is imported once more", func() error { _, err := os.Stat(mark); return err })
	request.OwnIDs = false
	if err := p.Stop(t.Context(), machinetest.First); err != nil {
		t.Fatal(err)
	}
	launch(true) // and none loses them
}

// All machines of a directory are shut down by whoever stops it, without a service, and no other's.
func TestEnd(t *testing.T) {
	s := newSite(t)
	c := config(s.dir, s.binDir)
	c.IDs = func() (userns.IDs, error) { return userns.IDs{First: 1<<29 + 1<<21, Count: 4 << 16}, nil }
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	stop := s.serve(t)
	t.Cleanup(stop)
	for id, own := range map[string]bool{machinetest.First: true, machinetest.Second: false} {
		if _, err := p.Launch(t.Context(), machine.LaunchRequest{ID: id, UserData: userData(t), Type: "m5.large", OwnIDs: own}); err != nil {
			t.Fatal(err)
		}
	}
	if ended, err := End(t.Context(), statedir.Dir(t.TempDir()), time.Second); err != nil || ended != 0 {
		t.Errorf("of another directory %d were ended: %v", ended, err)
	}
	if running, err := Running(s.dir); err != nil || len(running) != 2 {
		t.Fatalf("%v run: %v", running, err)
	}
	if ended, err := End(t.Context(), s.dir, 5*time.Second); err != nil || ended != 2 {
		t.Errorf("%d were ended: %v", ended, err)
	}
	if running, err := Running(s.dir); err != nil || len(running) != 0 {
		t.Errorf("%v still run: %v", running, err)
	}
}
