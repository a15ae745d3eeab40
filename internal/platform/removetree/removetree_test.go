// SPDX-License-Identifier: Apache-2.0

package removetree_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

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
