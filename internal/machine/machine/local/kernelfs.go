// SPDX-License-Identifier: Apache-2.0

package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

const kernelFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mountProc shows the machine's processes. Files of the kernel that all machines share cannot be written. Files of
// /proc/sys/net can: they are of the machine's own network namespace.
func mountProc(bootOrder) error {
	if err := unix.Mount("proc", "/proc", "proc", kernelFlags, ""); err != nil {
		return err
	}
	for _, path := range []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", path, err)
		}
		if err := remount(path, unix.MS_RDONLY); err != nil {
			return err
		}
	}
	const own = "/proc/sys/net"
	if err := unix.Mount(own, own, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", own, err)
	}
	return remount(own, 0)
}

func remount(path string, flags uintptr) error {
	if err := unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|kernelFlags|flags, ""); err != nil {
		return fmt.Errorf("mounting %s again: %w", path, err)
	}
	return nil
}

// kernelSettings are what a kubelet sets, or refuses to run without (pkg/kubelet/cm/container_manager_linux.go,
// setupKernelTunables): memory overcommitted, no panic when memory runs out, ten seconds from a panic to the reboot,
// and keys enough for containers.
func kernelSettings() map[string]string {
	return map[string]string{
		"kernel/keys/root_maxbytes": "25000000",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
	}
}

// ownKernelSettings gives the machine files of its own where settings of the whole kernel are: what they say is what
// the kubelet wants, and writing them changes nothing. The identity of the boot is the machine's own as well: a kubelet
// tells by it that its machine has been started again.
func ownKernelSettings(order bootOrder) error {
	settings := kernelSettings()
	if order.PIDs > 0 { // by which a kubelet bounds its pods (pkg/kubelet/stats/pidlimit)
		settings["kernel/threads-max"] = strconv.FormatInt(order.PIDs, 10)
	}
	settings["kernel/random/boot_id"] = uuid()
	for name, value := range settings {
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) { // a kernel without that
			continue
		}
		source := filepath.Join("/run/muster/kernel", strings.ReplaceAll(name, "/", "."))
		if err := os.MkdirAll(filepath.Dir(source), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(source, []byte(value+"\n"), 0o644); err != nil { //nolint:gosec // G306: as the kernel's own file
			return err
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	return nil
}

// uuid makes a random (version 4) UUID.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// mountSys shows the machine's network devices and the kernel's objects, read-only, and its own control groups,
// writable.
func mountSys(order bootOrder) error {
	// The mount is read-only, not the file system: a privileged pod on the machine's network mounts the same one,
	// writable.
	if err := unix.Mount("sysfs", "/sys", "sysfs", kernelFlags, ""); err != nil {
		return err
	}
	if err := remount("/sys", unix.MS_RDONLY); err != nil {
		return err
	}
	return mountCgroups(order.Cgroups)
}

// mountCgroups mounts the machine's control groups as the host has them: by the control group namespace, their roots
// are the machine's own.
func mountCgroups(cgroups host.Cgroups) error {
	const top = "/sys/fs/cgroup"
	if cgroups.Version() == 2 {
		if err := unix.Mount("cgroup2", top, "cgroup2", kernelFlags, ""); err != nil {
			return fmt.Errorf("mounting control groups (version 2): %w", err)
		}
		return host.Delegate(top)
	}
	if err := unix.Mount("tmpfs", top, "tmpfs", kernelFlags, "mode=755"); err != nil {
		return fmt.Errorf("mounting the directory of control groups: %w", err)
	}
	for _, h := range cgroups.Hierarchies {
		name, kind, options := "unified", "cgroup2", ""
		if !h.Unified {
			options = strings.Join(h.Options, ",")
			name, kind = strings.TrimPrefix(options, "name="), "cgroup"
		}
		target := filepath.Join(top, name)
		if err := os.Mkdir(target, 0o755); err != nil { //nolint:gosec // G301: as on every Linux system
			return err
		}
		if err := unix.Mount(kind, target, kind, kernelFlags, options); err != nil {
			return fmt.Errorf("mounting control groups %s: %w", name, err)
		}
		if len(h.Options) < 2 {
			continue
		}
		for _, controller := range h.Options { // cpu -> cpu,cpuacct
			if err := os.Symlink(name, filepath.Join(top, controller)); err != nil {
				return err
			}
		}
	}
	return nil
}
