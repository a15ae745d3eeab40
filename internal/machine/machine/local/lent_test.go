// SPDX-License-Identifier: Apache-2.0

// These tests make device files, so they need root.
package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
)

// needLoops skips a test where the kernel has no loop devices.
func needLoops(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		t.Skip("this kernel has no loop devices")
	}
}

// disk is a file of a megabyte. Whatever is attached to it at the end is detached.
func disk(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		all, _ := loopdevice.List()
		for _, d := range all {
			if d.Path == path {
				_ = loopdevice.Detach(d)
			}
		}
		_ = file.Close()
	})
	if err := file.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	return file
}

// What is lent opens for the machine's root alone; what is withdrawn opens for nobody there who kept hold of it.
func TestLend(t *testing.T) {
	needLoops(t)
	of := userns.IDs{First: 1 << 28, Count: 1 << 16}
	top, err := os.MkdirTemp("", "lent") //nolint:usetesting // directories above that are private
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	file := disk(t, filepath.Join(t.TempDir(), "disk"))
	d, err := loopdevice.Attach(file, "muster-test-lent", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = loopdevice.Detach(d) })
	machineDir := filepath.Join(top, "m")
	if err := os.Mkdir(machineDir, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(machineDir, lentDir)
	device := loopdevice.DeviceNumber(d.Number)
	if _, _, err := lend(dir, "loop1", device, of.Host(0)); err == nil || !strings.Contains(err.Error(), "earlier Muster") {
		t.Errorf("a machine that was not told that it may have devices is lent one: %v", err)
	}
	if err := beginLending(machineDir, of); err != nil {
		t.Fatal(err)
	}
	node, made, err := lend(dir, "loop1", device, of.Host(0))
	if err != nil || !made {
		t.Fatal(made, err)
	}
	defer func() { _ = node.Close() }()
	again, made, err := lend(dir, "loop1", device, of.Host(0))
	if err != nil || made {
		t.Fatal(made, err)
	}
	_ = again.Close()
	// As seen by the machine's root, who has hold of the node, and is nobody on the host.
	opens := func() error {
		done := make(chan error, 1)
		go host.OnThread(func() {
			if err := of.Enter(); err != nil {
				done <- err
				return
			}
			fd, err := unix.Open(opened(node), unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			done <- err
		})
		return <-done
	}
	if err := opens(); err != nil {
		t.Errorf("what is lent does not open: %v", err)
	}
	if all, err := lentIn(dir); err != nil || len(all) != 1 || all["loop1"] != device {
		t.Errorf("lent: %v, %v", all, err)
	}
	other, made, err := lend(dir, "loop1", device+1, of.Host(0)) // in place of what had the name before
	if err != nil || !made {
		t.Fatal(made, err)
	}
	_ = other.Close()
	if err := opens(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("what was withdrawn opens: %v", err)
	}
	if err := beginLending(machineDir, userns.IDs{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a machine with the host's ids has a directory for devices: %v", err)
	}
}

// launchIsolated launches a machine with ids of its own.
func launchIsolated(t *testing.T) (*Provider, statedir.Dir) {
	t.Helper()
	s := newSite(t)
	c := config(s.dir, s.binDir)
	c.IDs = func() (userns.IDs, error) { return userns.IDs{First: 1 << 29, Count: 4 << 16}, nil }
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.serve(t))
	if _, err := p.Launch(t.Context(), machine.LaunchRequest{ID: machinetest.First, UserData: userData(t), Type: "m5.large", OwnIDs: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Terminate(context.WithoutCancel(t.Context()), machinetest.First); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "containerd answers", func() error {
		if log := read(t, filepath.Join(s.dir.MachineLogs(machinetest.First), "node.log")); !strings.Contains(log, "containerd answers") {
			return errors.New(log)
		}
		return nil
	})
	return p, s.dir
}

// A volume's device is mounted, found, and taken away.
func TestLentVolume(t *testing.T) {
	needLoops(t)
	p, dir := launchIsolated(t)
	const id, target = machinetest.First, kubeletDir + "plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/u"
	d, err := loopdevice.Attach(disk(t, filepath.Join(t.TempDir(), "disk")), "muster-test-volume", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = loopdevice.Detach(d) })
	node, err := os.OpenFile(d.Node(), unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Close() }()
	look := func(want bool) {
		t.Helper()
		mounted, err := p.Mounted(id, node, target)
		at, atErr := p.MountedAt(id, node)
		used, usedErr := p.LoopDevices()
		if err := errors.Join(err, atErr, usedErr); err != nil || mounted != want || slices.Contains(at, target) != want || used[d.Number] != want {
			t.Errorf("want %v: mounted %v, at %q, used %v: %v", want, mounted, at, used, err)
		}
	}
	look(false)
	for range 2 {
		if err := p.Mount(id, node, target, false); err != nil {
			t.Fatal(err)
		}
		look(true)
	}
	if err := p.inside(id, func(*visit) error {
		fd, err := unix.Open(target, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}); err != nil {
		t.Errorf("root on the machine cannot open it: %v", err)
	}
	for range 2 {
		if err := p.Unmount(id, target); err != nil {
			t.Fatal(err)
		}
		look(false)
	}
	if err := p.Mount(id, node, target, true); err != nil {
		t.Fatal(err)
	}
	if err := p.WithdrawLoops(d.Number); err != nil {
		t.Fatal(err)
	}
	if all, err := lentIn(filepath.Join(dir.Machine(id), lentDir)); err != nil || len(all) > 0 {
		t.Errorf("lent after it was withdrawn: %v, %v", all, err)
	}
	// What a machine was lent that does not run any more is withdrawn when somebody looks.
	if err := p.Mount(id, node, target, true); err != nil {
		t.Fatal(err)
	}
	pid, _, err := p.find(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := endProcess(t.Context(), pid, 0); err != nil {
		t.Fatal(err)
	}
	if used, err := p.LoopDevices(); err != nil || used[d.Number] {
		t.Errorf("used by a machine that does not run: %v, %v", used, err)
	}
}

// A machine's own devices: what may be attached, how many, and what is left when somebody else detaches one, or when
// the machine ends.
func TestAttachLoop(t *testing.T) {
	needLoops(t)
	p, dir := launchIsolated(t)
	const id = machinetest.First
	onDisk := filepath.Join(dir.Machine(id), rootDir, "tmp", "file")
	file := disk(t, onDisk)
	d, err := p.AttachLoop(id, file, false)
	if err != nil || d.ReadOnly {
		t.Fatal(d, err)
	}
	over, err := os.OpenFile(d.Node(), os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := p.AttachLoop(id, over, false)
	_ = over.Close()
	if err != nil || lock.Over != d.Number || !lock.ReadOnly {
		t.Errorf("a device over %s, open for reading: %+v, %v", d.Node(), lock, err)
	}
	if has, err := p.Loops(id); err != nil || len(has) != 2 {
		t.Errorf("it has %v, %v", has, err)
	}
	if err := p.DetachLoop(id, lock.Number); err != nil {
		t.Fatal(err)
	}
	if err := p.DetachLoop(id, lock.Number); !errors.Is(err, ErrNotAttached) {
		t.Errorf("detached twice: %v", err)
	}
	mayNot(t, p, onDisk)
	// Somebody on the host detaches it.
	if err := loopdevice.Detach(d); err != nil {
		t.Fatal(err)
	}
	if err := p.CheckLoops(id); err != nil {
		t.Fatal(err)
	}
	if all, err := lentIn(filepath.Join(dir.Machine(id), lentDir)); err != nil || len(all) > 0 {
		t.Errorf("lent, and attached no more: %v, %v", all, err)
	}
	if _, err := p.AttachLoop(id, file, true); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if has, err := p.Loops(id); err != nil || len(has) > 0 {
		t.Errorf("stopped, it has %v, %v", has, err)
	}
}

// mayNot tries what no device may be of.
func mayNot(t *testing.T, p *Provider, onDisk string) {
	t.Helper()
	for name, c := range map[string]struct {
		path  string
		flags int
	}{
		"a directory":          {filepath.Dir(onDisk), os.O_RDONLY},
		"a terminal":           {"/dev/null", os.O_RDWR},
		"open for writing":     {onDisk, os.O_WRONLY},
		"a path":               {onDisk, unix.O_PATH},
		"a file of the kernel": {"/proc/self/mountinfo", os.O_RDONLY},
	} {
		file, err := os.OpenFile(c.path, c.flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := p.AttachLoop(machinetest.First, file, false); err == nil {
			t.Errorf("%s is attached: %+v", name, d)
		}
		_ = file.Close()
	}
}
