// SPDX-License-Identifier: Apache-2.0

package filestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/internal/cluster/filestore"
)

func TestDisk(t *testing.T) {
	s, root := store(t)
	if _, err := s.OpenDisk(id, "/base/disk", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening what is not there: %v", err)
	}
	for _, size := range []int64{1 << 30, 1 << 20} { // the second time it is there, and stays as it is
		if err := s.MakeDisk(id, "/base/disk", size); err != nil {
			t.Fatal(err)
		}
	}
	size, written, err := s.DiskUsage(id, "/base/disk")
	if err != nil || size != 1<<30 || written != 0 {
		t.Errorf("%d bytes, %d of them written, %v", size, written, err)
	}
	disk, err := s.OpenDisk(id, "/base/disk", false)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	if _, err := disk.WriteAt(make([]byte, 8192), 1<<29); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{1 << 31, 1 << 30} { // it grows, and does not shrink
		if err := s.GrowDisk(id, "/base/disk", want); err != nil {
			t.Fatal(err)
		}
		if size, written, err := s.DiskUsage(id, "/base/disk"); err != nil || size != 1<<31 || written < 8192 || written > 1<<20 {
			t.Errorf("%d bytes, %d of them written, %v", size, written, err)
		}
	}
	info, err := os.Stat(filepath.Join(root, id, "data", "base", "disk"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	read, err := s.OpenDisk(id, "/base/disk", true)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := read.WriteAt([]byte{1}, 0); err == nil {
		t.Error("what is opened for reading can be written")
	}
	if err := s.Discard(id, "/base/disk"); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "trash", "*")); len(left) > 0 {
		t.Errorf("left in the trash: %v", left)
	}
	if _, err := s.OpenDisk(id, "/base/disk", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening what was removed: %v", err)
	}
}

// Pods write where disks are, so what is there may be anything.
func TestNoDisk(t *testing.T) {
	s, root := store(t)
	data, secret := filepath.Join(root, id, "data"), filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(
		os.WriteFile(secret, []byte("secret"), 0o600), os.Symlink(secret, filepath.Join(data, "link")), os.Symlink(filepath.Dir(secret), filepath.Join(data, "dir")),
		os.WriteFile(filepath.Join(data, "one"), nil, 0o600), os.Link(filepath.Join(data, "one"), filepath.Join(data, "two")),
		os.Mkdir(filepath.Join(data, "volume"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/link", "/dir/secret", "/one", "/volume", "/", "/../x", "x"} {
		for _, readOnly := range []bool{true, false} {
			if disk, err := s.OpenDisk(id, path, readOnly); err == nil {
				t.Errorf("%s is opened as a disk", path)
				_ = disk.Close()
			}
		}
		if err := s.MakeDisk(id, path, 1<<20); err == nil {
			t.Errorf("%s is made a disk", path)
		}
	}
	if err := s.Make(id, "/link", filestore.Owner{Mode: 0o700}); err == nil {
		t.Error("a link is a directory")
	}
	if raw, err := os.ReadFile(secret); err != nil || string(raw) != "secret" {
		t.Errorf("%q, %v", raw, err)
	}
}
