// SPDX-License-Identifier: Apache-2.0

// These tests make namespaces, so they need root.
package userns_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/userns"
)

func ids(t *testing.T) userns.IDs {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes user namespaces for ids of its choice: run it as root")
	}
	return userns.IDs{First: 1 << 28, Count: 1 << 16}
}

// run runs a shell script as root of a namespace and returns what it printed.
func run(t *testing.T, of userns.IDs, prepare func() error, script string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "exec 2>&1\n"+script)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	var out strings.Builder
	cmd.Stdout = &out
	if err := userns.Start(cmd, of, unix.CLONE_NEWPID|unix.CLONE_NEWIPC, prepare); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its output says how it went
	return out.String()
}

func nothing() error { return nil }

func TestRootInsideIsNobodyOutside(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := run(t, ids(t), nothing, `id -u; cat /proc/self/uid_map; cat `+secret+`; head -c 1 /proc/sys/kernel/core_pattern >/dev/null; echo x >/proc/sys/kernel/core_pattern; hostname x; echo $$`)
	for _, want := range []string{"0\n", " 268435456 ", secret + ": Permission denied", "core_pattern: Permission denied", "\n1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if strings.Contains(out, "secret\n") || t.Failed() {
		t.Errorf("it printed:\n%s", out)
	}
}

// Mounts from before the namespace can neither be removed nor written to, whatever root inside tries. A mount of the
// namespace's own can.
func TestMountsAreLocked(t *testing.T) {
	shared, own := open(t), open(t)
	if err := unix.Mknod(filepath.Join(shared, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	prepare := func() error {
		if err := unix.Mount(shared, shared, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		return unix.MountSetattr(unix.AT_FDCWD, shared, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV})
	}
	for name, c := range map[string]struct {
		script string
		may    bool
	}{
		"reading":             {"ls " + shared, true},
		"writing":             {"touch " + shared + "/x", false},
		"a device in it":      {"echo >" + shared + "/null", false},
		"writable again":      {"mount -o remount,bind,rw,nodev " + shared, false},
		"with devices":        {"mount -o remount,bind,ro,dev " + shared, false},
		"taken away":          {"umount " + shared, false},
		"lazily":              {"umount -l " + shared, false},
		"moved":               {"mount --make-rprivate / && mount --move " + shared + " " + own, false},
		"another mount of it": {"mount --bind " + shared + " " + own + " && mount -o remount,bind,rw,nodev " + own, false},
		"in another copy":     {"unshare -m mount -o remount,bind,rw,nodev " + shared, false},
		"in a namespace more": {"unshare -Urm mount -o remount,bind,rw,nodev " + shared, false},
		"one of its own":      {"mount -t tmpfs none " + own + " && touch " + own + "/x && umount " + own, true},
	} {
		t.Run(name, func(t *testing.T) {
			out := run(t, ids(t), prepare, c.script+" && echo it may")
			if strings.HasSuffix(out, "it may\n") != c.may {
				t.Errorf("it printed %q", out)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(shared, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was written: %v", err)
	}
}

// open makes a directory that everybody may get to and write to.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "userns") //nolint:usetesting // directories above that are private
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The kernel counts what is used for the namespace's own user. This process, and the host, stay as they were.
func TestOwnerAndCaller(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	of := ids(t)
	cmd := exec.Command("/bin/cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := userns.Start(cmd, of, 0, func() error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") }); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = input.Close() }()
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	var owner uint32
	if err := ioctlOwner(namespace, &owner); err != nil || owner != of.First {
		t.Errorf("the namespace belongs to user %d, not %d: %v", owner, of.First, err)
	}
	if now, err := os.ReadFile("/proc/self/mountinfo"); err != nil || string(now) != string(mounts) {
		t.Errorf("mounts of this process have changed: %v", err)
	}
	for range 200 { // on whichever thread
		if unix.Geteuid() != 0 || unix.Getegid() != 0 {
			t.Fatal("a thread of this process is another user")
		}
	}
}

// Whoever enters as the first user may do there what root may, and nothing here.
func TestEnter(t *testing.T) {
	of := ids(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go host.OnThread(func() {
		if err := of.Enter(); err != nil {
			done <- err
			return
		}
		_, err := os.ReadFile(secret)
		done <- err
	})
	if err := <-done; !errors.Is(err, fs.ErrPermission) {
		t.Errorf("reading a file of root's: %v", err)
	}
	if err := (userns.IDs{}).Enter(); err == nil {
		t.Error("the host's own ids were entered")
	}
}

// A file system shown by the ids has the owners that it had.
func TestOpen(t *testing.T) {
	of := ids(t)
	namespace, err := of.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	disk := t.TempDir()
	tree, err := unix.OpenTree(unix.AT_FDCWD, disk, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(tree) }()
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace.Fd())}); err != nil {
		t.Fatal(err)
	}
	var shown unix.Stat_t
	if err := unix.Fstat(tree, &shown); err != nil || int(shown.Uid) != of.Host(0) {
		t.Errorf("root's directory is shown as that of %d: %v", shown.Uid, err)
	}
}
