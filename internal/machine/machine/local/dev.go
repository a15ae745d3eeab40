// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/devicerules"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/userns"
)

// device is a device of every machine: a character device, if it does not say that it is a block device.
type device struct {
	name         string
	major, minor uint32
	mode         uint32
	block        bool
	// optional devices are left out where the host has none.
	optional bool
}

func devices() []device {
	return []device{
		{name: "null", major: 1, minor: 3, mode: 0o666},
		{name: "zero", major: 1, minor: 5, mode: 0o666},
		{name: "full", major: 1, minor: 7, mode: 0o666},
		{name: "random", major: 1, minor: 8, mode: 0o666},
		{name: "urandom", major: 1, minor: 9, mode: 0o666},
		{name: "tty", major: 5, minor: 0, mode: 0o666},
		{name: "fuse", major: 10, minor: 229, mode: 0o666, optional: true},
	}
}

// deviceRules are the devices that programs of a machine with ids of its own may open, whatever device files it came
// by: those that it has, terminals (devices.txt of the kernel), and loop devices, which it opens by the files that it
// is lent.
func deviceRules() []devicerules.Rule {
	rules := []devicerules.Rule{
		{Major: 5, Minor: 1},
		{Major: 5, Minor: 2},
		{Major: 136, EveryMinor: true},
		{Block: true, Major: unix.Major(loopdevice.DeviceNumber(0)), EveryMinor: true},
	}
	for _, d := range devices() {
		rules = append(rules, devicerules.Rule{Block: d.block, Major: d.major, Minor: d.minor})
	}
	return rules
}

// limitDevices keeps the machine of a control group from all other devices. A host that has no device control, or lets nobody use it, has
// machines all the same, and says so; any other failure is one of the launch.
func limitDevices(groups host.Cgroups, group string, log *slog.Logger) error {
	err := devicerules.Limit(groups, group, deviceRules())
	switch {
	case errors.Is(err, devicerules.ErrNone):
		log.Warn("the host has no device control for a machine: which device files it has, and their modes, are all that keeps it from devices", "group", group, "error", err)
	case err != nil:
		return fmt.Errorf("keeping the machine from the host's devices: %w", err)
	}
	return nil
}

// loopDevices is how many loop devices a machine has nodes of. They are the kernel's, and so the host's and all
// machines': a kubelet has one over each block device that a pod uses, and programs attach files to them.
const loopDevices = 128

// loops are the devices by which programs attach files, where the host has them. Their minor numbers are the kernel's.
func loops() []device {
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		return nil
	}
	all := []device{{name: "loop-control", major: 10, minor: 237, mode: 0o600, optional: true}}
	for n := range uint32(loopDevices) {
		all = append(all, device{name: fmt.Sprintf("loop%d", n), major: 7, minor: n, mode: 0o600, block: true, optional: true})
	}
	return all
}

// stageDevices makes the devices of a machine in a directory: the harmless ones, and loop devices. Disks and the like
// of the host are not among them.
func stageDevices(dir string, ids userns.IDs) error {
	owner := ids.Host(0)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, fmt.Sprintf("mode=755,uid=%d,gid=%[1]d", owner)); err != nil {
		return err
	}
	all := slices.DeleteFunc(devices(), func(d device) bool {
		_, err := os.Stat("/dev/" + d.name)
		return d.optional && errors.Is(err, fs.ErrNotExist)
	})
	// A kubelet does not start without the kernel's log, in which it looks for processes killed for want of memory.
	kernelLog := device{name: "kmsg", major: 1, minor: 11, mode: 0o600}
	if _, err := os.Stat("/dev/kmsg"); err != nil || ids.Own() { // in a container, or where the log is not the machine's to read: it finds an empty one
		kernelLog = device{name: "kmsg", major: 1, minor: 3, mode: 0o600}
	}
	all = append(all, kernelLog)
	if !ids.Own() {
		all = append(all, loops()...)
	}
	for _, d := range all {
		if err := d.make(dir, owner); err != nil {
			return err
		}
	}
	return nil
}

// make makes a device, or shows the host's where making them is not allowed.
func (d device) make(dir string, owner int) error {
	path := filepath.Join(dir, d.name)
	kind := uint32(unix.S_IFCHR)
	if d.block {
		kind = unix.S_IFBLK
	}
	err := unix.Mknod(path, kind|d.mode, int(unix.Mkdev(d.major, d.minor))) //nolint:gosec // G115: a small number
	if err == nil {
		return errors.Join(os.Chmod(path, fs.FileMode(d.mode)), os.Chown(path, owner, owner)) //nolint:gosec // G703: a machine's own directory; the mode is that, whatever the umask is
	}
	if !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("making %s: %w", path, err)
	}
	hosts := filepath.Join("/dev", d.name)
	if _, err := os.Stat(hosts); d.optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	if err := unix.Mount(hosts, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", path, err)
	}
	return nil
}

// mountTerminals makes terminals, shared memory and message queues of the machine's own.
func mountTerminals(bootOrder) error {
	for _, mount := range []struct {
		kind, name, options string
		flags               uintptr
	}{
		{"devpts", "pts", "newinstance,ptmxmode=0666,mode=620,gid=5", unix.MS_NOSUID | unix.MS_NOEXEC},
		{"tmpfs", "shm", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"mqueue", "mqueue", "", kernelFlags},
	} {
		target := filepath.Join("/dev", mount.name)
		if err := os.Mkdir(target, 0o755); err != nil { //nolint:gosec // G301: as on every Linux system
			return err
		}
		if err := unix.Mount(mount.kind, target, mount.kind, mount.flags, mount.options); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	return errors.Join(
		link("pts/ptmx", "/dev/ptmx"),
		link("/proc/self/fd", "/dev/fd"),
		link("/proc/self/fd/0", "/dev/stdin"),
		link("/proc/self/fd/1", "/dev/stdout"),
		link("/proc/self/fd/2", "/dev/stderr"),
	)
}
