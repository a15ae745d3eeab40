// SPDX-License-Identifier: Apache-2.0

// A test here mounts something, which needs root.

package hostjoin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A volume that is mounted below a directory of the node's is not emptied when the directory is, whatever name that
// has.
func TestMountedVolumesAreNotEmptied(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a directory: run it as root")
	}
	for name, keep := range map[string]bool{"linked before the join": true, "linked since": false} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			at := func(path string) string { return filepath.Join(root, path) }
			for _, dir := range []string{"data/kubelet/pods/volume", "data/kubelet/pki", "var/lib", "precious"} {
				if err := os.MkdirAll(at(dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{"precious/file", "data/kubelet/pki/key"} {
				if err := os.WriteFile(at(file), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(at("data/kubelet"), at("var/lib/kubelet")); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount(at("precious"), at("data/kubelet/pods/volume"), "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(at("data/kubelet/pods/volume"), unix.MNT_DETACH) }) // if the test has not
			if err := (disk{root: root}).removeTree(Tree{Path: "/var/lib/kubelet", Keep: keep}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(at("precious/file")); err != nil {
				t.Errorf("what was mounted is gone: %v", err)
			}
			if left, err := os.ReadDir(at("data/kubelet")); err != nil || len(left) > 0 {
				t.Errorf("%v is left of the node: %v", left, err)
			}
			if _, err := os.Lstat(at("var/lib/kubelet")); (err == nil) != keep {
				t.Errorf("the link: %v", err)
			}
		})
	}
}

// What is not there is gone, also where nothing can be removed: on some systems /usr is read-only, and programs of a node
// have made nothing in it.
func TestNothingToRemoveOnAReadOnlyFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a directory: run it as root")
	}
	root := t.TempDir()
	usr := filepath.Join(root, "usr")
	if err := errors.Join(os.Mkdir(usr, 0o700), unix.Mount("none", usr, "tmpfs", unix.MS_RDONLY, "size=64k")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(usr, unix.MNT_DETACH) })
	d := disk{root: root}
	if err := errors.Join(d.remove("/usr/file"), d.removeTree(Tree{Path: "/usr/kubernetes"}), d.removeTree(Tree{Path: "/usr/libexec/kubernetes"})); err != nil {
		t.Error(err)
	}
	if gone, err := d.removeDir("/usr/directory"); err != nil || !gone {
		t.Errorf("%v, %v", gone, err)
	}
}

// A pod may have nested directories deeper than this process can hold files open.
func TestDeepDirectoriesAreRemoved(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "var/lib/kubelet/pods"+strings.Repeat("/d", 600)), 0o700); err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 256
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err := (disk{root: root}).removeTree(Tree{Path: "/var/lib/kubelet"})
	if err := errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)); err != nil {
		t.Error(err)
	}
}
