// SPDX-License-Identifier: Apache-2.0

package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/cluster/filestore"
	"muster.dev/muster/internal/platform/loopdevice"
)

// copying stands for a file system that can share content.
func copying(to, from *os.File) error {
	_, err := io.Copy(to, from)
	return err
}

func storeWith(t *testing.T, root string, reflink func(to, from *os.File) error) *filestore.Store {
	t.Helper()
	s := filestore.New(root)
	if reflink != nil {
		s = filestore.NewReflinking(root, reflink)
	}
	if err := s.Ensure(id); err != nil {
		t.Fatal(err)
	}
	return s
}

var from, to = filestore.Place{FileSystemID: id, Path: "/from"}, filestore.Place{FileSystemID: id, Path: "/base/to"}

// fillVolume makes a volume with one of everything in it, and returns its directory.
func fillVolume(t *testing.T, s *filestore.Store, root, secret string) string {
	t.Helper()
	if err := s.Make(id, from.Path, filestore.Owner{UID: 7, GID: 8, Mode: 0o2750}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, id, "data", "from")
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	long := strings.Repeat("n", 255)
	then := time.Unix(1234567890, 987654321)
	if err := errors.Join(
		os.MkdirAll(in("a", long), 0o711), os.WriteFile(in("a", long, "deep"), []byte("deep"), 0o600), os.WriteFile(in("empty"), nil, 0o600),
		os.WriteFile(in("set-id"), []byte("#!"), 0o600), os.Chown(in("set-id"), 9, 10), unix.Chmod(in("set-id"), 0o4711),
		unix.Setxattr(in("set-id"), "user.note", []byte("said"), 0),
		os.Link(in("set-id"), in("a", "same")), os.Link(in("set-id"), in("a", long, "same")),
		os.Symlink(secret, in("link")), os.Symlink(filepath.Dir(secret), in("a", "outside")), os.Symlink("../..", in("a", "up")), os.Lchown(in("link"), 11, 12),
		unix.Mkfifo(in("pipe"), 0o640), unix.Mknod(in("socket"), unix.S_IFSOCK|0o600, 0),
		os.Truncate(in("empty"), 1<<40), os.WriteFile(in("..."), []byte("\x00"), 0o000), os.WriteFile(in("new\nline"), nil, 0o600),
		os.Chtimes(in("a"), then, then), os.Chtimes(in("set-id"), then, then), os.Truncate(in("empty"), 0), os.Chtimes(dir, then, then),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

// listed are the names below a directory with all that is to be the same in a copy.
func listed(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	first := map[uint64]string{}
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(name, &stat); err != nil {
			return err
		}
		relative, _ := filepath.Rel(dir, name)
		if _, ok := first[stat.Ino]; !ok {
			first[stat.Ino] = relative
		}
		target, content, note := "", []byte{}, make([]byte, 64)
		switch stat.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			target, err = os.Readlink(name)
		case unix.S_IFREG:
			content, err = os.ReadFile(name)
		}
		n, _ := unix.Lgetxattr(name, "user.note", note)
		modified := time.Unix(stat.Mtim.Unix())
		all = append(all, strings.Join([]string{
			relative, first[stat.Ino], os.FileMode(stat.Mode).String(), time.Duration(stat.Uid).String(), time.Duration(stat.Gid).String(), target, string(content), string(note[:max(n, 0)]), modified.String(),
		}, "|"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// reflinking mounts a file system that can share content, of each kind that this host can make.
func eachFileSystem(t *testing.T, test func(t *testing.T, root string, reflink func(to, from *os.File) error)) {
	t.Helper()
	t.Run("one that stands for it", func(t *testing.T) { test(t, t.TempDir(), copying) })
	for kind, command := range map[string][]string{"xfs": {"mkfs.xfs", "-q", "-m", "reflink=1"}, "btrfs": {"mkfs.btrfs", "-q"}} {
		t.Run(kind, func(t *testing.T) { test(t, mounted(t, kind, command), nil) })
	}
}

func mounted(t *testing.T, kind string, command []string) string {
	t.Helper()
	program, err := exec.LookPath(command[0])
	if err != nil {
		t.Skip(err)
	}
	if raw, _ := os.ReadFile("/proc/filesystems"); !slices.Contains(strings.Fields(string(raw)), kind) {
		t.Skip("this kernel has no " + kind)
	}
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		t.Skip("this kernel has no loop devices")
	}
	image, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if err := image.Truncate(512 << 20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program, append(command[1:], image.Name())...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	device, err := loopdevice.Attach(image, "muster-test-clone", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := loopdevice.Detach(device); err != nil {
			t.Error(err)
		}
	})
	root := filepath.Join(t.TempDir(), "root")
	if err := errors.Join(os.Mkdir(root, 0o700), unix.Mount(device.Node(), root, kind, 0, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	return root
}

func TestCloneDirectory(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, root string, reflink func(to, from *os.File) error) {
		t.Helper()
		s := storeWith(t, root, reflink)
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.CanClone(id); err != nil {
			t.Fatal(err)
		}
		dir, copied := fillVolume(t, s, root, secret), filepath.Join(root, id, "data", "base", "to")
		want := listed(t, dir)
		if err := s.CloneDirectory(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		if got := listed(t, copied); !slices.Equal(got, want) {
			t.Errorf("the copy is\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		// The two have nothing to do with each other any more, and a copy that is there stays.
		if err := errors.Join(os.WriteFile(filepath.Join(copied, "set-id"), []byte("changed"), 0o600), s.CloneDirectory(t.Context(), from, to)); err != nil {
			t.Fatal(err)
		}
		if got := listed(t, dir); !slices.Equal(got, want) {
			t.Errorf("what is written to a copy is in what it was made of:\n%s", strings.Join(got, "\n"))
		}
		if raw, err := os.ReadFile(filepath.Join(copied, "a", "same")); err != nil || string(raw) != "changed" {
			t.Errorf("%q, %v", raw, err)
		}
		if err := s.Discard(id, from.Path); err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(filepath.Join(copied, "a", strings.Repeat("n", 255), "deep")); err != nil || string(raw) != "deep" {
			t.Errorf("after its source went: %q, %v", raw, err)
		}
		nothingStaged(t, root)
	})
}

func nothingStaged(t *testing.T, root string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(root, id, "staging", "*")); len(left) > 0 {
		t.Errorf("left in staging: %q", left)
	}
}

func TestCloneDisk(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, root string, reflink func(to, from *os.File) error) {
		t.Helper()
		s := storeWith(t, root, reflink)
		if err := s.MakeDisk(id, from.Path, 8<<20); err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(root, id, "data", "from")
		if err := errors.Join(os.WriteFile(source, []byte("content"), 0o600), os.Truncate(source, 8<<20)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.CloneDisk(from, to, 16<<20); err != nil {
				t.Fatal(err)
			}
		}
		disk, err := s.OpenDisk(id, to.Path, true)
		if err != nil {
			t.Fatal(err)
		}
		defer disk.Close()
		first := make([]byte, 8)
		if _, err := disk.ReadAt(first, 0); err != nil || string(first) != "content\x00" {
			t.Errorf("%q, %v", first, err)
		}
		if info, err := disk.Stat(); err != nil || info.Size() != 16<<20 || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		nothingStaged(t, root)
	})
}

// Nothing is copied slowly where content cannot be shared.
func TestCloneWithoutReflink(t *testing.T) {
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	s := storeWith(t, root, nil)
	if err := s.CanClone(id); !errors.Is(err, filestore.ErrNoReflink) || !strings.Contains(err.Error(), "on tmpfs") {
		t.Error(err)
	}
	nothingStaged(t, root)
	if err := errors.Join(s.Make(id, from.Path, filestore.Owner{Mode: 0o700}), os.WriteFile(filepath.Join(root, id, "data", "from", "file"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.CloneDirectory(t.Context(), from, to); err == nil {
		t.Error("it is copied")
	}
	if there, err := s.Has(to); there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	nothingStaged(t, root)
	if err := s.CanClone("../" + id); err == nil {
		t.Error("a path is an id")
	}
}

// What happens while a volume is copied.
func TestCloneMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(s *filestore.Store, dir string, end func()) error
		says      string
	}{
		"files go":        {func(_ *filestore.Store, dir string, _ func()) error { return os.RemoveAll(filepath.Join(dir, "a")) }, ""},
		"the volume goes": {func(s *filestore.Store, _ string, _ func()) error { return s.Discard(id, from.Path) }, "removed meanwhile"},
		"another is there": {func(s *filestore.Store, _ string, _ func()) error {
			return errors.Join(s.Discard(id, from.Path), s.Make(id, from.Path, filestore.Owner{Mode: 0o700}))
		}, "removed meanwhile"},
		"a file is there":    {func(*filestore.Store, string, func()) error { return unix.EEXIST }, "file exists"},
		"the store is swept": {func(s *filestore.Store, _ string, _ func()) error { return s.Sweep() }, ""},
		"the disk fails":     {func(*filestore.Store, string, func()) error { return unix.ENOSPC }, "no space left"},
		"the service ends":   {func(_ *filestore.Store, _ string, end func()) error { end(); return nil }, "canceled"},
		"another was quicker": {func(s *filestore.Store, _ string, _ func()) error {
			return s.Make(id, to.Path, filestore.Owner{Mode: 0o700})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root, once := t.TempDir(), false
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var s *filestore.Store
			s = storeWith(t, root, func(to, from *os.File) error {
				if once {
					return copying(to, from)
				}
				once = true
				return errors.Join(test.meanwhile(s, filepath.Join(root, id, "data", "from"), cancel), copying(to, from))
			})
			fillVolume(t, s, root, "/nowhere")
			err := s.CloneDirectory(ctx, from, to)
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Error(err)
			}
			if there, hasErr := s.Has(to); hasErr != nil || there != (err == nil) {
				t.Errorf("there is a copy: %v, %v", there, hasErr)
			}
			nothingStaged(t, root)
		})
	}
}

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

func TestCloneRefuses(t *testing.T) {
	root := t.TempDir()
	s := storeWith(t, root, copying)
	data := filepath.Join(root, id, "data")
	deep := filepath.Join(data, "deep"+strings.Repeat("/d", 202))
	if err := errors.Join(os.MkdirAll(deep, 0o700), os.Mkdir(filepath.Join(data, "plain"), 0o700), os.Symlink("plain", filepath.Join(data, "link")), os.WriteFile(filepath.Join(data, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for source, says := range map[string]string{"/deep": "nested too deeply", "/": "root", "/link": "", "/file": "", "/none": "", "/../x": "invalid path", "/plain/../..": "invalid path"} {
		if err := s.CloneDirectory(t.Context(), filestore.Place{FileSystemID: id, Path: source}, to); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", source, err)
		}
		if err := s.CloneDirectory(t.Context(), filestore.Place{FileSystemID: id, Path: "/plain"}, filestore.Place{FileSystemID: id, Path: "/link/x"}); err == nil {
			t.Error("a copy is made through a link")
		}
		if source != "/file" {
			if err := s.CloneDisk(filestore.Place{FileSystemID: id, Path: source}, to, 0); err == nil {
				t.Errorf("%s is copied as a disk", source)
			}
		}
	}
	if there, err := s.Has(to); there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	nothingStaged(t, root)
}

// What a crash left of a copy goes when the service begins again.
func TestSweepCopy(t *testing.T) {
	root := t.TempDir()
	s := storeWith(t, root, copying)
	half := filepath.Join(root, id, "staging", "HALF", "a")
	if err := errors.Join(os.MkdirAll(half, 0o700), os.WriteFile(filepath.Join(half, "file"), nil, 0o600), s.Sweep()); err != nil {
		t.Fatal(err)
	}
	nothingStaged(t, root)
}
