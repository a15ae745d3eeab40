// SPDX-License-Identifier: Apache-2.0

// These tests give directories to other users, so they need root.
package filestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/storage/filestore"
)

const id = "fs-0123456789abcdef0"

func store(t *testing.T) (*filestore.Store, string) {
	t.Helper()
	root := t.TempDir()
	s := filestore.New(root)
	if err := s.Ensure(id); err != nil {
		t.Fatal(err)
	}
	return s, root
}

func TestMakeAndOpen(t *testing.T) {
	s, root := store(t)
	for range 2 { // an existing directory stays as it is
		if err := s.Make(id, "/base/volume", filestore.Owner{UID: 7, GID: 8, Mode: 0o2751}); err != nil {
			t.Fatal(err)
		}
		if err := s.Ensure(id); err != nil {
			t.Fatal(err)
		}
		if err := s.Make(id, "/base/volume", filestore.Owner{Mode: 0o700}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := s.Open(id, "/base/volume")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Stat()
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	if stat.Uid != 7 || stat.Gid != 8 || stat.Mode&0o7777 != 0o2751 {
		t.Errorf("it belongs to %d:%d with mode %o", stat.Uid, stat.Gid, stat.Mode)
	}
	if left, _ := filepath.Glob(filepath.Join(root, id, "staging", "*")); len(left) > 0 {
		t.Errorf("left in staging: %v", left)
	}
	if _, err := s.Open(id, "/base/another"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening what is not there: %v", err)
	}
}

// Links that a pod leaves in its volume lead nowhere else.
func TestNoWayOut(t *testing.T) {
	s, root := store(t)
	secret := filepath.Join(root, "secret")
	if err := os.MkdirAll(filepath.Join(secret, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"absolute": secret, "relative": "../../secret", "own": "real", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(root, id, "data", link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Make(id, "/real", filestore.Owner{Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/absolute", "/relative", "/own", "/up", "/absolute/inner", "/../secret", "//", "/real/..", "real", ""} {
		if dir, err := s.Open(id, path); err == nil {
			_ = dir.Close()
			t.Errorf("%q was opened", path)
		}
		if err := s.Make(id, path, filestore.Owner{Mode: 0o700}); err == nil {
			t.Errorf("%q was made", path)
		}
	}
	if err := s.Discard(id, "/absolute/inner"); err == nil {
		t.Error("removed through a link")
	}
	if err := s.Discard(id, "/absolute"); err != nil { // the link itself
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(secret, "inner")); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "fs-1", "../" + id, "trash"} {
		if err := errors.Join(s.Ensure(bad), s.Remove(bad)); err == nil {
			t.Errorf("file system %q", bad)
		}
	}
}

func TestDiscard(t *testing.T) {
	s, root := store(t)
	if err := s.Make(id, "/a/b", filestore.Owner{Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, id, "data/a/b/file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(id, "/"); err == nil {
		t.Error("the root was removed")
	}
	for range 2 {
		if err := s.Discard(id, "/a/b"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Discard(id, "/c/d"); err != nil {
		t.Error(err)
	}
	if _, err := s.Open(id, "/a"); err != nil {
		t.Errorf("the directory above: %v", err)
	}
	if _, err := s.Open(id, "/a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for range 2 {
		if err := s.Remove(id); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(root, "*", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A pod may nest directories deeper than the service can hold files open.
func TestDiscardDeep(t *testing.T) {
	s, root := store(t)
	if err := s.Make(id, "/a", filestore.Owner{Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(filepath.Join(root, id, "data/a"), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range 600 {
		if err != nil {
			t.Fatal(err)
		}
		made := unix.Mkdirat(at, "d", 0o700)
		next, openErr := unix.Openat(at, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		at, err = next, errors.Join(made, openErr, unix.Close(at))
	}
	if err := errors.Join(err, unix.Close(at)); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 256
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err = s.Discard(id, "/a")
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Error(err)
	}
}

// A service that was killed while it made one directory and removed another.
func TestSweep(t *testing.T) {
	s, root := store(t)
	for _, dir := range []string{id + "/staging/X", "trash/Y/deep", id + "/data/volume"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{id + "/staging/*": 0, "trash/*": 0, id + "/data/*": 1} {
		if left, _ := filepath.Glob(filepath.Join(root, path)); len(left) != want {
			t.Errorf("%s: %v", path, left)
		}
	}
	if err := filestore.New(filepath.Join(root, "none")).Sweep(); err != nil {
		t.Errorf("an empty store: %v", err)
	}
}

// The directory of the store may have any name.
func TestSweepOfAnyDirectory(t *testing.T) {
	for _, name := range []string{"[a]", "a[", "a*"} {
		root := filepath.Join(t.TempDir(), name)
		s := filestore.New(root)
		if err := errors.Join(s.Ensure(id), os.MkdirAll(filepath.Join(root, id, "staging", "left", "a"), 0o700), os.MkdirAll(filepath.Join(root, "trash", "left"), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := s.Sweep(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, dir := range []string{filepath.Join(id, "staging"), "trash"} {
			if left, err := os.ReadDir(filepath.Join(root, dir)); err != nil || len(left) > 0 {
				t.Errorf("%s: %s has %v, %v", name, dir, left, err)
			}
		}
	}
}

func TestSpace(t *testing.T) {
	s, _ := store(t)
	space, err := s.Space()
	if err != nil || space.Total <= 0 || space.Available <= 0 || space.Available > space.Total {
		t.Errorf("%+v, %v", space, err)
	}
	if _, err := filestore.New(filepath.Join(t.TempDir(), "none")).Space(); err != nil {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	s, root := store(t)
	if err := s.Make(id, "/v", filestore.Owner{Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, id, "data/v")
	empty, err := s.Usage(t.Context(), filestore.Place{FileSystemID: id, Path: "/v"})
	if err != nil || empty.Files != 1 {
		t.Fatalf("%+v, %v", empty, err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o700), os.WriteFile(filepath.Join(dir, "d", "f"), make([]byte, 1<<20), 0o600), os.Symlink("/usr", filepath.Join(dir, "l"))); err != nil {
		t.Fatal(err)
	}
	full, err := s.Usage(t.Context(), filestore.Place{FileSystemID: id, Path: "/v"})
	if err != nil || full.Files != 4 || full.Bytes-empty.Bytes < 1<<20 || full.Bytes-empty.Bytes > 2<<20 {
		t.Errorf("%+v after %+v, %v", full, empty, err)
	}
	deep := dir
	for range 250 {
		deep = filepath.Join(deep, "d")
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Usage(t.Context(), filestore.Place{FileSystemID: id, Path: "/v"}); err == nil {
		t.Error("a depth without end was counted")
	}
}
