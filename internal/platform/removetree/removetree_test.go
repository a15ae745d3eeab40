// SPDX-License-Identifier: Apache-2.0

package removetree_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/removetree"
)

// nest makes directories in one another, each with a file beside the next.
func nest(t *testing.T, path string, depth int) {
	t.Helper()
	at, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		file, fileErr := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		err := errors.Join(fileErr, unix.Close(file), unix.Mkdirat(at, "d", 0o700))
		next, openErr := unix.Openat(at, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err := errors.Join(err, openErr, unix.Close(at)); err != nil {
			t.Fatal(err)
		}
		at = next
	}
	if err := unix.Close(at); err != nil {
		t.Fatal(err)
	}
}

func expectGone(t *testing.T, path string) {
	t.Helper()
	if err := removetree.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

// Directories are removed with fewer files open than they are deep.
func TestDeep(t *testing.T) {
	for _, depth := range []int{0, 1, 64, 65, 66, 600} {
		path := filepath.Join(t.TempDir(), "tree")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		nest(t, path, depth)
		var before unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		few := before
		few.Cur = 256
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		err := removetree.RemoveAll(path)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Errorf("%d levels: %v", depth, err)
		}
		expectGone(t, path)
	}
}

func TestWide(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tree")
	for n := range 1100 {
		if err := os.MkdirAll(filepath.Join(path, fmt.Sprint(n%3), fmt.Sprint(n)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	expectGone(t, path)
}

// Links are removed, and what they lead to stays.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	if err := errors.Join(os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "file"), nil, 0o600), os.MkdirAll(filepath.Join(dir, "tree", "a"), 0o700),
		os.Symlink(outside, filepath.Join(dir, "tree", "a", "link")), os.Symlink(outside, filepath.Join(dir, "link")), os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tree", "link", "plain", "nothing", "nothing/at/all"} {
		expectGone(t, filepath.Join(dir, name))
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
	if err := removetree.RemoveAll(filepath.Join(outside, "file", "x")); err == nil {
		t.Error("a path through a file is removed")
	}
}

// Anybody makes subvolumes of btrfs and protects them; directories do not leave one.
func TestSubvolumes(t *testing.T) {
	if raw, _ := os.ReadFile("/proc/filesystems"); !bytes.Contains(raw, []byte("btrfs")) {
		t.Skip("this kernel has no btrfs")
	}
	image, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if err := image.Truncate(256 << 20); err != nil {
		t.Fatal(err)
	}
	run := func(program string, arguments ...string) {
		t.Helper()
		if _, err := exec.LookPath(program); err != nil {
			t.Fatal("looking for what tools/testneeds.sh installs: ", err)
		}
		if out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v: %s", program, arguments, err, out)
		}
	}
	run("mkfs.btrfs", "-q", image.Name())
	device, err := loopdevice.Attach(image, "muster-test-remove", false)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = loopdevice.Detach(device) }()
	root := t.TempDir()
	if err := unix.Mount(device.Node(), root, "btrfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(root, unix.MNT_DETACH) }()
	tree := filepath.Join(root, "tree")
	deep := filepath.Join(tree, strings.Repeat("d/", 100))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, at := range []string{tree, deep} {
		for range 3 { // in one another
			at = filepath.Join(at, "volume")
			run("btrfs", "subvolume", "create", at)
			if err := errors.Join(os.MkdirAll(filepath.Join(at, strings.Repeat("d/", 100)), 0o700), os.WriteFile(filepath.Join(at, "file"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			all = append(all, at)
		}
	}
	for _, at := range all {
		run("btrfs", "property", "set", "-ts", at, "ro", "true")
	}
	expectGone(t, tree)
}

// A privileged pod protects what it likes from being removed.
func TestProtected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tree")
	if err := errors.Join(os.MkdirAll(filepath.Join(path, "a", "b"), 0o700), os.WriteFile(filepath.Join(path, "a", "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("chattr", "-R", "-f", "-ia", path).Run() })
	for flag, names := range map[string][]string{"+i": {"a/file", "a/b", "a"}, "+a": {""}} {
		for _, name := range names {
			if out, err := exec.CommandContext(t.Context(), "chattr", flag, filepath.Join(path, name)).CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
		}
	}
	expectGone(t, path)
}
