// SPDX-License-Identifier: Apache-2.0

package filestore_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/storage/filestore"
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

// eachFileSystem tests on a file system that can share content, of each kind that this host can make.
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
		t.Fatal("looking for what tools/testneeds.sh installs: ", err)
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
			if err := s.CloneDisk(t.Context(), from, to, 16<<20); err != nil {
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
	if err := s.CanClone(id); !errors.As(err, new(*filestore.NoReflinkError)) || !strings.Contains(err.Error(), "on tmpfs") {
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

// Changes while a volume is copied.
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
			if err := s.CloneDisk(t.Context(), filestore.Place{FileSystemID: id, Path: source}, to, 0); err == nil {
				t.Errorf("%s is copied as a disk", source)
			}
		}
	}
	if there, err := s.Has(to); there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	nothingStaged(t, root)
}

// The rest of a copy that a crash cut short is removed when the service begins again.
func TestSweepCopy(t *testing.T) {
	root := t.TempDir()
	s := storeWith(t, root, copying)
	half := filepath.Join(root, id, "staging", "HALF", "a")
	if err := errors.Join(os.MkdirAll(half, 0o700), os.WriteFile(filepath.Join(half, "file"), nil, 0o600), s.Sweep()); err != nil {
		t.Fatal(err)
	}
	nothingStaged(t, root)
}
