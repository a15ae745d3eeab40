// SPDX-License-Identifier: Apache-2.0

package diskreserve

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/statedir"
)

const mib = 1 << 20

func TestNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was  State
		free int64
		held bool
		is   State
		hold bool
	}{
		"a disk with room":                   {Narrow, 320 * mib, false, Plenty, true},
		"a disk with the reserve":            {Plenty, 64 * mib, true, Plenty, true},
		"after a restart":                    {Narrow, 64 * mib, true, Plenty, true},
		"the disk is full":                   {Plenty, 64*mib - 1, true, Full, false},
		"full, and nothing held":             {Narrow, 0, false, Full, false},
		"the reserve was let go":             {Full, 192 * mib, false, Full, false},
		"too little to hold":                 {Narrow, 319 * mib, false, Narrow, false},
		"too little to hold, and there is":   {Plenty, 319 * mib, false, Narrow, false},
		"room again":                         {Full, 320 * mib, false, Plenty, true},
		"full with the reserve after a stop": {Narrow, 0, true, Full, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if is, hold := next(c.was, c.free, c.held); is != c.is || hold != c.hold {
				t.Errorf("state %d, held %v, want %d, %v", is, hold, c.is, c.hold)
			}
		})
	}
}

// disk mounts a file system of 400 MiB.
func disk(t *testing.T) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a file system is mounted by root alone")
	}
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size=400m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// use has a file take some of the disk.
func use(t *testing.T, file *os.File, size int64) {
	t.Helper()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, size); err != nil {
		t.Fatal(err)
	}
}

// TestFileThatHoldsLittle finds a file that a process left which was killed while it made it, and one that was copied
// without what it took of the disk, as backups are.
func TestFileThatHoldsLittle(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*testing.T, *os.File){
		"a part of one": func(t *testing.T, file *os.File) { t.Helper(); use(t, file, 128*mib) },
		"a sparse one": func(t *testing.T, file *os.File) {
			t.Helper()
			if err := file.Truncate(Size); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for full, want := range map[bool]State{false: Plenty, true: Full} {
			t.Run(fmt.Sprintf("%s, full %t", name, full), func(t *testing.T) {
				t.Parallel()
				dir := disk(t)
				r := New(statedir.Dir(dir), slog.New(slog.DiscardHandler))
				file, err := os.Create(r.path())
				if err != nil {
					t.Fatal(err)
				}
				leave(t, file)
				if err := file.Close(); err != nil {
					t.Fatal(err)
				}
				if full {
					takeAllBut(t, dir, 20*mib)
				}
				for range 2 { // a part is removed first
					if err := r.look(); err != nil {
						t.Fatal(err)
					}
				}
				free, err := available(dir)
				if err != nil {
					t.Fatal(err)
				}
				_, none := os.Stat(r.path())
				if is, _ := r.State(); is != want || (none != nil) != full || !full && free > 400*mib-Size {
					t.Errorf("state %d, %d MiB are free, the file: %v", is, free>>20, none)
				}
			})
		}
	}
}

// takeAllBut leaves so much of a disk.
func takeAllBut(t *testing.T, dir string, rest int64) {
	t.Helper()
	free, err := available(dir)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "rest"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	use(t, file, free-rest)
}

// TestLook fills a file system, and gives it room again.
func TestLook(t *testing.T) {
	t.Parallel()
	dir := disk(t)
	r := New(statedir.Dir(dir), slog.New(slog.DiscardHandler))
	look := func(want State, held, said bool) {
		t.Helper()
		_, changed := r.State()
		if err := r.look(); err != nil {
			t.Fatal(err)
		}
		told := false
		select {
		case <-changed:
			told = true
		default:
		}
		if is, _ := r.State(); is != want || r.held() != held || told != said {
			t.Fatalf("state %d, held %v, told %v, want %d, %v, %v", is, r.held(), told, want, held, said)
		}
	}
	if err := os.WriteFile(r.path(), []byte("killed in between"), 0o600); err != nil {
		t.Fatal(err)
	}
	look(Plenty, true, true)
	look(Plenty, true, false)
	other, err := os.Create(filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	use(t, other, 208*mib-4096)
	look(Full, false, true)
	look(Full, false, false)
	if err := other.Truncate(0); err != nil {
		t.Fatal(err)
	}
	look(Plenty, true, true)
}

func TestLookAtNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	r := New(statedir.Dir(dir), slog.New(slog.DiscardHandler))
	if err := r.look(); err == nil {
		t.Error("a directory that is gone has a disk")
	}
}
