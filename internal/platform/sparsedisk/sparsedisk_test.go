// SPDX-License-Identifier: Apache-2.0

// These tests mount file systems, so they need root.

package sparsedisk_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/sparsedisk"
)

const size = 256 << 20

// place is a file and where it is mounted. Whatever is mounted or attached of it at the end is an error.
func place(t *testing.T) (path, at string) {
	t.Helper()
	dir := t.TempDir()
	path, at = filepath.Join(dir, "disk"), filepath.Join(dir, "root")
	t.Cleanup(func() {
		if err := sparsedisk.Unmount(at); err != nil {
			t.Error(err)
		}
		if mounted, err := sparsedisk.Mounted(at); err != nil || mounted {
			t.Errorf("it is still mounted: %v", err)
		}
		detached(t, path)
	})
	return path, at
}

// detached waits until a file is behind no device: the kernel takes it from one a moment after the last program has
// closed it, udev's among them.
func detached(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); len(behind(t, path)) > 0; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // it polls with a deadline
		if time.Now().After(end) {
			t.Fatalf("still attached: %+v", behind(t, path))
		}
	}
}

func behind(t *testing.T, path string) (all []loopdevice.Device) {
	t.Helper()
	list, err := loopdevice.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if d.Path == path || d.Path == path+".new" {
			all = append(all, d)
		}
	}
	return all
}

func mustMake(t *testing.T, path string) {
	t.Helper()
	if err := sparsedisk.Make(t.Context(), path, size); err != nil {
		t.Fatal(err)
	}
}

func mustMount(t *testing.T, path, at string) {
	t.Helper()
	if err := sparsedisk.Mount(t.Context(), path, at, "muster-test"); err != nil {
		t.Fatal(err)
	}
}

func written(t *testing.T, path string) int64 {
	t.Helper()
	bytes, err := sparsedisk.Written(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// A file system has its size and no more, takes the room of what is in it, and gives it back.
func TestBound(t *testing.T) {
	path, at := place(t)
	mustMake(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != size {
		t.Fatalf("the file is %v, %v", info, err)
	}
	mustMount(t, path, at)
	var stat unix.Statfs_t
	if err := unix.Statfs(at, &stat); err != nil || stat.Flags&(unix.ST_NODEV|unix.ST_NOSUID|unix.ST_NOEXEC) != unix.ST_NODEV|unix.ST_NOSUID|unix.ST_NOEXEC {
		t.Errorf("mounted with the flags %#x: %v", stat.Flags, err)
	}
	if kept := stat.Bfree - stat.Bavail; kept > stat.Blocks/32 { // ext4 keeps a fiftieth for itself
		t.Errorf("%d blocks are kept for root", kept)
	}
	empty := written(t, path)
	if empty > 16<<20 {
		t.Errorf("without anything in it the file takes %d bytes", empty)
	}
	fill(t, filepath.Join(at, "half"), size/2, nil)
	if got := written(t, path); got < size/2 { // some of the room of the empty disk is free for files: mke2fs writes zeros at the end of the device
		t.Errorf("with half of it used the file takes %d bytes", got)
	}
	fill(t, filepath.Join(at, "all"), size, unix.ENOSPC)
	if got := written(t, path); got > size {
		t.Errorf("full, the file takes %d bytes", got)
	}
	if err := errors.Join(os.Remove(filepath.Join(at, "half")), os.Remove(filepath.Join(at, "all"))); err != nil {
		t.Fatal(err)
	}
	sync(t, at)
	for end := time.Now().Add(20 * time.Second); written(t, path) > empty+16<<20; time.Sleep(50 * time.Millisecond) { //nolint:forbidigo // it polls with a deadline
		if time.Now().After(end) {
			t.Fatalf("with everything removed the file takes %d bytes", written(t, path))
		}
	}
}

// fill writes a file until it has a size or an error comes.
func fill(t *testing.T, path string, bytes int, want error) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	part := []byte(strings.Repeat("x", 1<<20))
	for range bytes >> 20 {
		if _, err = file.Write(part); err != nil {
			break
		}
	}
	if err == nil {
		err = file.Sync()
	}
	if !errors.Is(err, want) {
		t.Errorf("writing %d bytes: %v, want %v", bytes, err, want)
	}
}

func sync(t *testing.T, at string) {
	t.Helper()
	dir, err := os.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		t.Fatal(err)
	}
}

// Whatever step the process before was killed at, the next one has the file system mounted, once, and nothing is left
// when it is unmounted.
func TestGoesOn(t *testing.T) {
	for name, left := range map[string]func(t *testing.T, path, at string){
		"nothing": func(*testing.T, string, string) {},
		"half of a file": func(t *testing.T, path, _ string) {
			t.Helper()
			if err := os.WriteFile(path+".new", []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a file": func(t *testing.T, path, _ string) { t.Helper(); mustMake(t, path) },
		"an attached file": func(t *testing.T, path, _ string) {
			t.Helper()
			mustMake(t, path)
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, held, err := loopdevice.Hold(file, "muster-test")
			if err := errors.Join(err, file.Close(), held.Close()); err != nil { // which the kernel does for a process that is killed
				t.Fatal(err)
			}
			detached(t, path)
		},
		"a mount": func(t *testing.T, path, at string) { t.Helper(); mustMake(t, path); mustMount(t, path, at) },
		"a mount that is no more": func(t *testing.T, path, at string) {
			t.Helper()
			mustMake(t, path)
			mustMount(t, path, at)
			unmount(t, at)
		},
		"a mount that is still used": func(t *testing.T, path, at string) {
			t.Helper()
			mustMake(t, path)
			mustMount(t, path, at)
			dir, err := os.Open(at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = dir.Close() })
			unmount(t, at)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, at := place(t)
			left(t, path, at)
			for range 2 {
				mustMake(t, path)
				mustMount(t, path, at)
			}
			if all := behind(t, path); len(all) != 1 || all[0].Name != "muster-test" {
				t.Errorf("attached: %+v", all)
			}
			if err := os.WriteFile(filepath.Join(at, "kept"), []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			unmount(t, at)
			mustMount(t, path, at)
			if got, err := os.ReadFile(filepath.Join(at, "kept")); err != nil || string(got) != "kept" {
				t.Errorf("in it is %q, %v", got, err)
			}
		})
	}
}

func unmount(t *testing.T, at string) {
	t.Helper()
	if err := sparsedisk.Unmount(at); err != nil {
		t.Fatal(err)
	}
}

// A journal is replayed, a mistake that the kernel has found is mended, and what cannot be is told with the program
// that asks.
func TestMend(t *testing.T) {
	path, at := place(t)
	mustMake(t, path)
	mustMount(t, path, at)
	if err := os.WriteFile(filepath.Join(at, "kept"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	sync(t, at)
	lost := path + "-lost" // as a host leaves it that loses its power
	if out, err := exec.CommandContext(t.Context(), "cp", "--sparse=always", path, lost).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	unmount(t, at)
	detached(t, path)
	mustMount(t, lost, at)
	if got, err := os.ReadFile(filepath.Join(at, "kept")); err != nil || string(got) != "kept" {
		t.Errorf("after a power loss there is %q, %v", got, err)
	}
	unmount(t, at)
	detached(t, lost)

	if out, err := exec.CommandContext(t.Context(), "tune2fs", "-E", "force_fsck", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mustMount(t, path, at)
	unmount(t, at)
	detached(t, path)
	if out, err := exec.CommandContext(t.Context(), "dumpe2fs", "-h", path).CombinedOutput(); err != nil || !strings.Contains(string(out), "Filesystem state:         clean\n") {
		t.Errorf("it was not mended: %v\n%s", err, out)
	}

	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(make([]byte, 4096), 0)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	if err := sparsedisk.Mount(t.Context(), path, at, "muster-test"); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "e2fsck") {
		t.Errorf("without a superblock: %v", err)
	}
}

func TestNotMounted(t *testing.T) {
	t.Parallel()
	for _, at := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if mounted, err := sparsedisk.Mounted(at); err != nil || mounted {
			t.Errorf("%s is mounted: %v, %v", at, mounted, err)
		}
		if err := sparsedisk.Unmount(at); err != nil {
			t.Error(err)
		}
	}
	if err := sparsedisk.Mount(t.Context(), filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "root"), "muster-test"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}
