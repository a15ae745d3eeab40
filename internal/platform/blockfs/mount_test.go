// SPDX-License-Identifier: Apache-2.0

// These tests make devices, namespaces and mounts, so they need root.
package blockfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/userns"
)

func ids() userns.IDs { return userns.IDs{First: 1 << 28, Count: 1 << 16} }

// device attaches a file with a file system to a loop device, and opens a node of it that belongs to root of the ids.
func device(t *testing.T, readOnly bool, mkfs ...string) (*os.File, loopdevice.Device) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes devices: run it as root")
	}
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		t.Skip("this kernel has no loop devices")
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := file.Truncate(320 << 20); err != nil { // XFS wants that much
		t.Fatal(err)
	}
	if len(mkfs) > 0 {
		if out, err := exec.Command(mkfs[0], append(mkfs[1:], file.Name())...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	d, err := loopdevice.Attach(file, "muster-test-blockfs", readOnly)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = loopdevice.Detach(d) })
	node := filepath.Join(dir, "node")
	if err := errors.Join(unix.Mknod(node, unix.S_IFBLK|0o600, int(loopdevice.DeviceNumber(d.Number))), os.Chown(node, ids().Host(0), ids().Host(0))); err != nil {
		t.Fatal(err)
	}
	flags := os.O_RDWR
	if readOnly {
		flags = os.O_RDONLY
	}
	opened, err := os.OpenFile(node, flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened, d
}

// world is a process in a user namespace and a mount namespace of its own, with a tmpfs on /mnt.
func world(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "mount -t tmpfs none /mnt && mkdir /mnt/at /mnt/other && echo ready && exec cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := userns.Start(cmd, ids(), 0, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	if line := make([]byte, 6); readAll(output, line) != "ready\n" {
		t.Fatal("there is no namespace")
	}
	return cmd.Process.Pid
}

func readAll(from io.Reader, into []byte) string {
	n, _ := io.ReadFull(from, into)
	return string(into[:n])
}

// put attaches a mount there, as its root.
func put(t *testing.T, pid int, mount *os.File) error {
	t.Helper()
	done := make(chan error, 1)
	go host.OnThread(func() {
		done <- func() error {
			namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
			if err != nil {
				return err
			}
			defer func() { _ = namespace.Close() }()
			if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS)); err != nil {
				return err
			}
			if err := ids().Enter(); err != nil {
				return err
			}
			return unix.MoveMount(int(mount.Fd()), "", unix.AT_FDCWD, "/mnt/at", unix.MOVE_MOUNT_F_EMPTY_PATH)
		}()
	})
	return <-done
}

// run runs a script there as root.
func run(t *testing.T, pid int, script string) string {
	t.Helper()
	out, _ := exec.CommandContext(t.Context(), "nsenter", "--target", strconv.Itoa(pid), "--user", "--mount", "--setuid=0", "--setgid=0", "--", "sh", "-c", "exec 2>&1; cd /mnt/at; "+script).CombinedOutput()
	return string(out)
}

// leave has a device file that anybody may open be on a file system, as root of a machine may write it there.
func leave(t *testing.T, d loopdevice.Device, kind string) {
	t.Helper()
	p, err := decide(Request{Type: kind})
	if err != nil {
		t.Fatal(err)
	}
	mount, err := p.mount(d.Node(), loopdevice.DeviceNumber(d.Number), settlePatience)
	if err != nil {
		t.Fatal(err)
	}
	root, err := unix.Openat(int(mount.Fd()), ".", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Mknodat(root, "hosts", unix.S_IFBLK|0o666, int(loopdevice.DeviceNumber(d.Number))),
		unix.Fchmodat(root, "hosts", 0o666, 0), unix.Close(root), mount.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestMount(t *testing.T) {
	for kind, mkfs := range map[string][]string{"ext4": {"mkfs.ext4", "-q"}, "ext2": {"mkfs.ext2", "-q"}, "xfs": {"mkfs.xfs", "-q"}} {
		t.Run(kind, func(t *testing.T) {
			opened, d := device(t, false, mkfs...)
			leave(t, d, kind)
			pid := world(t)
			mount, err := Mount(t.Context(), opened, d.Node(), Request{Type: kind}, ids())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(put(t, pid, mount), mount.Close()); err != nil {
				t.Fatal(err)
			}
			if out := run(t, pid, "echo hello >file && chown 7:8 file && stat -c '%u:%g' file . && mknod dev b 7 0 || grep /mnt/at /proc/self/mountinfo"); !strings.HasPrefix(out, "7:8\n0:0\n") || !strings.Contains(out, "nosuid,nodev") {
				t.Errorf("it printed:\n%s", out)
			}
			for name, script := range map[string]string{
				"suid and dev":           "mount -o remount,bind,suid,dev /mnt/at",
				"dev":                    "mount -o remount,bind,nosuid,dev /mnt/at",
				"suid":                   "mount -o remount,bind,nodev,suid /mnt/at",
				"of another mount":       "mount --bind /mnt/at /mnt/other && mount -o remount,bind,nosuid,dev /mnt/other",
				"the file system's":      "mount -o remount,ro /mnt/at",
				"errors":                 "mount -o remount,errors=panic /mnt/at",
				"frozen":                 "fsfreeze -f /mnt/at",
				"in another namespace":   "unshare -m mount -o remount,bind,nosuid,dev /mnt/at",
				"in a namespace of own":  "unshare -Urm mount -o remount,bind,nosuid,dev /mnt/at",
				"a device file in it":    "test -r /mnt/at/hosts && head -c 1 /mnt/at/hosts",
				"shown as on the device": "mount -t " + kind + " " + d.Node() + " /mnt/other",
			} {
				if out := run(t, pid, "echo tried; "+script+" && echo it may"); strings.Contains(out, "it may") || !strings.HasPrefix(out, "tried\n") {
					t.Errorf("%s: it printed %q", name, out)
				}
			}
			if out := run(t, pid, "cd / && umount /mnt/at && ls -A /mnt/at && echo gone"); out != "gone\n" {
				t.Errorf("it printed %q", out)
			}
		})
	}
}

// A damaged file system is not mounted, nor another kind of file system, nor a device without one. A file system that
// was not unmounted is mounted.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		kind     string
		mkfs     []string
		do       string // to the device, $1
		flags    uint64
		readOnly bool
		want     error
	}{
		"nothing":               {kind: "ext4", want: unix.EINVAL},
		"nothing, as XFS":       {kind: "xfs", want: unix.EINVAL},
		"another":               {kind: "xfs", mkfs: []string{"mkfs.ext4", "-q"}, want: unix.EINVAL},
		"damaged":               {kind: "ext4", mkfs: []string{"mkfs.ext4", "-q", "-b", "4096"}, do: "dd if=/dev/urandom of=$1 bs=4k seek=1 count=60 conv=notrunc status=none", want: unix.EUCLEAN},
		"damaged XFS":           {kind: "xfs", mkfs: []string{"mkfs.xfs", "-q"}, do: "dd if=/dev/urandom of=$1 bs=512 seek=1 count=8 conv=notrunc status=none", want: unix.EUCLEAN},
		"may panic":             {kind: "ext4", mkfs: []string{"mkfs.ext4", "-q", "-e", "panic"}},
		"options of its own":    {kind: "ext4", mkfs: []string{"mkfs.ext4", "-q"}, do: "tune2fs -E mount_opts=discard $1", want: unix.EINVAL},
		"journal elsewhere":     {kind: "ext4", mkfs: []string{"mkfs.ext4", "-q"}, do: "debugfs -w -R 'ssv journal_dev 0x0801' $1 2>/dev/null", want: unix.EINVAL},
		"a journal":             {kind: "ext4", mkfs: []string{"mke2fs", "-q", "-O", "journal_dev"}, want: unix.EINVAL},
		"not unmounted":         {kind: "ext4", mkfs: []string{"mkfs.ext4", "-q"}, do: "debugfs -w -R 'feature needs_recovery' $1 2>/dev/null"},
		"read-only device":      {kind: "ext4", mkfs: []string{"mkfs.ext4", "-q"}, flags: unix.MS_RDONLY, readOnly: true},
		"read-only device, not": {kind: "ext4", mkfs: []string{"mkfs.ext4", "-q"}, readOnly: true, want: unix.EUCLEAN}, // MountDevice does not come so far
	} {
		t.Run(name, func(t *testing.T) {
			opened, d := device(t, c.readOnly, c.mkfs...)
			if c.do != "" {
				if out, err := exec.Command("sh", "-ec", c.do+"; sync $1", "sh", d.Node()).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			mount, err := Mount(t.Context(), opened, d.Node(), Request{Type: c.kind, Flags: c.flags}, ids())
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if err == nil {
				_ = mount.Close()
			}
		})
	}
}

// A device that is mounted has one file system, however often it is mounted. A device that another program has open
// exclusively is not mounted.
func TestMountedAlready(t *testing.T) {
	opened, d := device(t, false, "mkfs.ext4", "-q")
	first, err := Mount(t.Context(), opened, d.Node(), Request{Type: "ext4"}, ids())
	if err != nil {
		t.Fatal(err)
	}
	second, err := Mount(t.Context(), opened, d.Node(), Request{Type: "ext4"}, ids())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}
	var fd int
	for until := time.Now().Add(10 * time.Second); ; { // the kernel takes a moment to unmount it
		if fd, err = unix.Open(d.Node(), unix.O_RDWR|unix.O_EXCL, 0); err == nil || time.Now().After(until) {
			break
		}
	}
	if err != nil {
		t.Fatalf("what nobody has hold of any more is mounted: %v", err)
	}
	let := time.AfterFunc(settlePatience/4, func() { _ = unix.Close(fd) }) // so that what was not checked would be mounted
	if _, err := Mount(t.Context(), opened, d.Node(), Request{Type: "ext4"}, ids()); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a device that somebody has for themselves: %v", err)
	}
	if let.Stop() {
		_ = unix.Close(fd)
	}
	if _, err := Mount(t.Context(), opened, d.Node(), Request{Type: "ext4"}, userns.IDs{}); !errors.Is(err, unix.EPERM) {
		t.Errorf("with the host's ids: %v", err)
	}
}
