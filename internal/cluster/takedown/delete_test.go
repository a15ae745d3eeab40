// SPDX-License-Identifier: Apache-2.0

package takedown

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/statedir"
)

// TestDeleteEmptiesWhatIsMounted deletes an installation whose volumes are on a file system of their own, which stays.
func TestDeleteEmptiesWhatIsMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := statedir.Dir(t.TempDir())
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
	for _, path := range []string{filepath.Join(mounted, "fs-0123456789abcdef0", "data", "a"), filepath.Join(string(dir), "pki", "a")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("a"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
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

func TestRemoveFilesOfAnEmptyDirectory(t *testing.T) {
	if err := removeFiles(statedir.Cluster(t.TempDir())); err != nil {
		t.Error(err)
	}
}
