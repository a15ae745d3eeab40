// SPDX-License-Identifier: Apache-2.0

package filestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/storage/filestore"
)

// A copy of which a part is removed is none: that name was there in what is copied.
func TestCloneLosesAPart(t *testing.T) {
	root := t.TempDir()
	s := storeWith(t, root, func(to, from *os.File) error {
		begun, err := filepath.Glob(filepath.Join(root, id, "staging", "*", "a"))
		return errors.Join(err, os.RemoveAll(strings.Join(begun, "")), copying(to, from))
	})
	in := filepath.Join(root, id, "data", "from", "a")
	if err := errors.Join(os.MkdirAll(in, 0o700), os.WriteFile(filepath.Join(in, "1"), nil, 0o600), os.WriteFile(filepath.Join(in, "2"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.CloneDirectory(t.Context(), from, to); err == nil {
		t.Error("it is copied")
	}
}

// A pod writes its files anew while they are copied: on XFS, a name that was read already is read once more.
func TestCloneNamesTwice(t *testing.T) {
	root := mounted(t, "xfs", []string{"mkfs.xfs", "-q", "-m", "reflink=1"})
	dir := filepath.Join(root, id, "data", "from")
	s := storeWith(t, root, func(to, from *os.File) error {
		name := filepath.Join(dir, filepath.Base(from.Name()))
		return errors.Join(copying(to, from), os.Remove(name), os.WriteFile(name, []byte("again"), 0o600))
	})
	if err := s.Make(id, from.Path, filestore.Owner{Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	const files = 2000
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, "file-"+strconv.Itoa(i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CloneDirectory(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(filepath.Join(root, id, "data", "base", "to")); err != nil || len(names) != files {
		t.Errorf("%d files, %v", len(names), err)
	}
}

// Databases have files that are written in place, which btrfs shares only with such.
func TestCloneWithoutCopyOnWrite(t *testing.T) {
	root := mounted(t, "btrfs", []string{"mkfs.btrfs", "-q"})
	s := storeWith(t, root, nil)
	dir := filepath.Join(root, id, "data", "from")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "chattr", "+C", dir).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.CloneDirectory(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(filepath.Join(root, id, "data", "base", "to", "file")); err != nil || string(raw) != "content" {
		t.Errorf("%q, %v", raw, err)
	}
}

// A directory that cannot be read is not empty.
func TestCloneOfADamagedDirectory(t *testing.T) {
	root := mounted(t, "xfs", []string{"mkfs.xfs", "-q", "-m", "reflink=1"})
	s := storeWith(t, root, nil)
	in := filepath.Join(root, id, "data", "from", "a")
	if err := os.MkdirAll(in, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 40 { // too many for an inode, and few enough for a block
		if err := os.WriteFile(filepath.Join(in, "file-with-a-long-name-"+strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stat unix.Stat_t
	if err := unix.Stat(root, &stat); err != nil {
		t.Fatal(err)
	}
	device := fmt.Sprintf("/dev/block/%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	if _, err := os.Stat(device); err != nil {
		device = fmt.Sprintf("/dev/loop%d", unix.Minor(stat.Dev))
	}
	if err := unix.Unmount(root, 0); err != nil {
		t.Fatal(err)
	}
	if err := damage(device, []byte("XDB3")); err != nil { // a directory of one block (xfs_dir2_format)
		t.Fatal(err)
	}
	if err := unix.Mount(device, root, "xfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.CloneDirectory(t.Context(), from, to); err == nil {
		t.Error("it is copied")
	}
}

// damage changes a byte in each block of a device that begins with a mark.
func damage(device string, mark []byte) error {
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	found := errors.New("there is no such block")
	buffer := make([]byte, 1<<20)
	for at := int64(0); ; at += int64(len(buffer)) {
		n, err := file.ReadAt(buffer, at)
		for block := 0; block < n; block += 4096 {
			if bytes.HasPrefix(buffer[block:n], mark) {
				_, found = file.WriteAt([]byte("damage"), at+int64(block)+512)
			}
		}
		if errors.Is(err, io.EOF) {
			return errors.Join(found, file.Sync())
		}
		if err != nil {
			return err
		}
	}
}

// The number of a file that is gone may be another file's, which is not one more name of the first.
func TestCloneOfAReusedInode(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, id, "data", "from")
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	var before, after unix.Stat_t
	calls := 0
	s := storeWith(t, root, func(to, from *os.File) error {
		if calls++; calls != 2 { // the first one is copied and remembered
			return copying(to, from)
		}
		begun, err := filepath.Glob(filepath.Join(root, id, "staging", "*", "*-[12]"))
		first := filepath.Base(begun[0])
		if first == filepath.Base(from.Name()) {
			first = filepath.Base(begun[1])
		}
		first, _, _ = strings.Cut(first, "-")
		err = errors.Join(err, unix.Stat(in(first+"-1"), &before))
		var tick unix.Stat_t // of the file system's clock, so that what is made after it has another time of birth
		for err == nil && tick.Ctim.Nano() <= before.Ctim.Nano() {
			err = errors.Join(os.WriteFile(filepath.Join(root, "tick"), []byte("tick"), 0o600), unix.Stat(filepath.Join(root, "tick"), &tick))
		}
		err = errors.Join(err, os.Remove(in(first+"-1")), os.Remove(in(first+"-2")))
		for i := 0; err == nil && i < 1000 && after.Ino != before.Ino; i++ {
			err = errors.Join(os.WriteFile(in("new"), []byte("new"), 0o600), unix.Stat(in("new"), &after), os.Rename(in("new"), filepath.Join(root, strconv.Itoa(i))))
			if after.Ino == before.Ino {
				for j := range 20 {
					err = errors.Join(err, os.Link(filepath.Join(root, strconv.Itoa(i)), in("d"+strconv.Itoa(j), "new")))
				}
			}
		}
		return errors.Join(err, copying(to, from))
	})
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		one, two := in(strconv.Itoa(i)+"-1"), in(strconv.Itoa(i)+"-2")
		if err := errors.Join(os.Mkdir(in("d"+strconv.Itoa(i)), 0o700), os.WriteFile(one, []byte("old"), 0o600), os.Link(one, two)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CloneDirectory(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	if after.Ino != before.Ino {
		t.Skip("the number of a file is not used again")
	}
	all, err := filepath.Glob(filepath.Join(root, id, "data", "base", "to", "d*", "new"))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, one := range all {
		if raw, err := os.ReadFile(one); err != nil || string(raw) != "new" {
			t.Errorf("%s has %q in it, %v", filepath.Base(filepath.Dir(one)), raw, err)
		}
	}
}

// A file with several names may have them deeper than a path can be long.
func TestCloneOfLongLinks(t *testing.T) {
	root := t.TempDir()
	s := storeWith(t, root, copying)
	if err := s.Make(id, from.Path, filestore.Owner{Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	deepest := func(at string) (fd int) {
		fd, err := unix.Open(filepath.Join(root, id, "data", at), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		for range 20 {
			name := strings.Repeat("n", 255)
			if made := unix.Mkdirat(fd, name, 0o700); made != nil && !errors.Is(made, unix.EEXIST) {
				t.Fatal(made)
			}
			next, openErr := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err := errors.Join(err, openErr, unix.Close(fd)); err != nil {
				t.Fatal(err)
			}
			fd = next
		}
		return fd
	}
	fd := deepest("from")
	file, err := unix.Openat(fd, "one", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err := errors.Join(err, unix.Close(file), unix.Linkat(fd, "one", fd, "two", 0), unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
	failing := storeWith(t, root, func(*os.File, *os.File) error { return unix.EIO })
	if err := failing.CloneDirectory(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "input/output") || len(err.Error()) > 1000 {
		t.Errorf("%d characters say that the disk fails", len(err.Error()))
	}
	if err := s.CloneDirectory(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	fd = deepest("base/to")
	var one, two unix.Stat_t
	if err := errors.Join(unix.Fstatat(fd, "one", &one, 0), unix.Fstatat(fd, "two", &two, 0), unix.Close(fd)); err != nil || one.Ino != two.Ino || one.Nlink != 2 {
		t.Errorf("%d and %d, %v", one.Ino, two.Ino, err)
	}
}
