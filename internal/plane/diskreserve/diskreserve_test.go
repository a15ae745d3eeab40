// SPDX-License-Identifier: Apache-2.0

package diskreserve

import (
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

// TestLook fills a file system, and gives it room again.
func TestLook(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a file system is mounted by root alone")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size=400m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
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
	if err := unix.Fallocate(int(other.Fd()), 0, 0, 208*mib-4096); err != nil {
		t.Fatal(err)
	}
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
