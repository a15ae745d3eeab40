// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDeleteEmptiesWhatIsMounted deletes an installation whose volumes are on a file system of their own, which stays.
func TestDeleteEmptiesWhatIsMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := newDir(t)
	mounted := dir.FileSystems()
	if err := os.MkdirAll(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", mounted, "tmpfs", 0, "mode=0700,size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mounted, 0); err != nil {
			t.Error(err)
		}
	})
	write(t, filepath.Join(mounted, "fs-0123456789abcdef0", "data", "a"), "a")
	write(t, filepath.Join(string(dir), "pki", "a"), "a")
	for range 2 {
		stays, err := Delete(t.Context(), dir)
		if err != nil || !slices.Equal(stays, []string{mounted}) {
			t.Fatalf("%q, %v", stays, err)
		}
		entries, err := os.ReadDir(string(dir))
		if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(mounted) {
			t.Errorf("left are %v, %v", entries, err)
		}
		if entries, err := os.ReadDir(mounted); err != nil || len(entries) > 0 {
			t.Errorf("of the volumes are left %v, %v", entries, err)
		}
	}

	below := filepath.Join(mounted, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", below, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	if _, err := Delete(t.Context(), dir); err == nil {
		t.Error("what is mounted farther down is said to be removed")
	}
	if err := unix.Unmount(below, 0); err != nil {
		t.Error(err)
	}
}
