// SPDX-License-Identifier: Apache-2.0

package filestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/storage/filestore"
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
	size, written, err := s.DiskUsage(filestore.Place{FileSystemID: id, Path: "/base/disk"})
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
		if size, written, err := s.DiskUsage(filestore.Place{FileSystemID: id, Path: "/base/disk"}); err != nil || size != 1<<31 || written < 8192 || written > 1<<20 {
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

// opened counts how often a file is opened from now on.
func opened(t *testing.T, path string) func() int {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	return func() int {
		n, _ := unix.Read(fd, make([]byte, 4096))
		return max(n, 0) / unix.SizeofInotifyEvent
	}
}

// A device node of a pod's is a device of the host here, and opening it may be all that it takes. A pipe stands for it.
func TestNothingElseIsOpened(t *testing.T) {
	s, root := store(t)
	dir := filepath.Join(root, id, "data", "from")
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(file, nil, 0o600), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	times := opened(t, pipe)
	if _, err := s.OpenDisk(id, "/from/pipe", false); err == nil || times() > 0 {
		t.Errorf("a pipe is opened as a disk: %v", err)
	}
	s = filestore.NewReflinking(root, copying)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for { // each is the other all the time
			select {
			case <-done:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, pipe, unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 300 {
		_ = s.CloneDirectory(t.Context(), from, to)
		if err := s.Discard(id, to.Path); err != nil {
			t.Error(err)
		}
	}
	close(done)
	<-ended
	if n := times(); n > 0 {
		t.Errorf("a pipe is opened %d times or more while it is copied", n)
	}
}
