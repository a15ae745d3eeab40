// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/blockfs"
	"muster.dev/muster/internal/platform/loopdevice"
)

// A machine has the file systems of devices mounted that it is lent, and of no others; what is mounted ends with it.
func TestMountDevice(t *testing.T) {
	needLoops(t)
	p, dir := launchIsolated(t)
	const id, target = machinetest.First, "/mnt/at"
	file := disk(t, filepath.Join(dir.Machine(id), rootDir, "tmp", "file"))
	if err := file.Truncate(8 << 20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", file.Name()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d, err := p.AttachLoop(id, file, false)
	if err != nil {
		t.Fatal(err)
	}
	ext4 := blockfs.Request{Type: "ext4"}
	opened := func(path string, flags int) *os.File {
		t.Helper()
		var device *os.File
		if err := p.inside(id, func(*visit) (err error) {
			device, err = os.OpenFile(path, flags, 0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = device.Close() })
		return device
	}
	device := opened(d.Node(), os.O_RDWR)
	for name, c := range map[string]struct {
		device *os.File
		with   blockfs.Request
		want   error
	}{
		"open for reading only": {opened(d.Node(), os.O_RDONLY), ext4, unix.EACCES},
		"a path":                {opened(d.Node(), unix.O_PATH), ext4, unix.EACCES},
		"open for writing only": {opened(d.Node(), os.O_WRONLY), ext4, unix.EACCES},
		"a file":                {opened("/tmp/file", os.O_RDWR), ext4, unix.ENOTBLK},
		"a directory":           {opened("/tmp", os.O_RDONLY), ext4, unix.ENOTBLK},
		"a terminal":            {opened("/dev/null", os.O_RDWR), ext4, unix.ENOTBLK},
		"not XFS":               {device, blockfs.Request{Type: "xfs"}, unix.EINVAL},
		"another type":          {device, blockfs.Request{Type: "proc"}, unix.ENODEV},
		"what ends the host":    {device, blockfs.Request{Type: "ext4", Options: "errors=panic"}, unix.EINVAL},
	} {
		if mount, err := p.MountDevice(t.Context(), id, c.device, c.with); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, mount, err, c.want)
		}
		if c.device != device {
			_ = c.device.Close()
		}
	}
	// Another device of the host, with a file system, which the machine was never lent.
	other, err := loopdevice.Attach(file, "muster-test-other", true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = loopdevice.Detach(other) })
	hosts, err := os.Open(other.Node())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hosts.Close() }()
	if mount, err := p.MountDevice(t.Context(), id, hosts, blockfs.Request{Type: "ext4", Flags: unix.MS_RDONLY}); !errors.Is(err, unix.EPERM) {
		t.Errorf("a device that is not lent: %v, %v", mount, err)
	}
	mount, err := p.MountDevice(t.Context(), id, device, ext4)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.inside(id, func(*visit) error {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.MoveMount(int(mount.Fd()), "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return err
		}
		return os.WriteFile(target+"/file", nil, 0o600)
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(mount.Close(), device.Close()); err != nil {
		t.Fatal(err)
	}
	if mounts := read(t, "/proc/self/mountinfo"); strings.Contains(mounts, d.Node()+" ") {
		t.Errorf("it is mounted on the host:\n%s", mounts)
	}
	pid, _, err := p.find(id)
	if err != nil {
		t.Fatal(err)
	}
	if mounts := read(t, filepath.Join("/proc", strconv.Itoa(pid), "mountinfo")); !strings.Contains(mounts, d.Node()+" ") {
		t.Errorf("it is not mounted on the machine:\n%s", mounts)
	}
	// What is withdrawn is mounted no more, though the machine has it open.
	kept := opened(d.Node(), os.O_RDWR)
	if err := p.DetachLoop(id, d.Number); err != nil {
		t.Fatal(err)
	}
	if mount, err := p.MountDevice(t.Context(), id, kept, ext4); !errors.Is(err, unix.EPERM) {
		t.Errorf("a device that was withdrawn: %v, %v", mount, err)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the device goes with the machine's mounts", func() error {
		all, err := loopdevice.List()
		for _, one := range all {
			if one.Name == loopName(dir, id) {
				err = errors.Join(err, fs.ErrExist)
			}
		}
		return err
	})
}
