// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Whatever a machine leaves where directories of the host are to be shown, links and files, is replaced, and nothing
// beyond its disk is touched.
func TestPlacesOnAHostileDisk(t *testing.T) {
	host, dir := t.TempDir(), t.TempDir()
	for path, target := range map[string]string{
		"usr": host, "opt": "../../../../../../" + host, "etc/alternatives": host, "bin": host,
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "dev"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	disk, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	for _, path := range []string{"usr", ownPrograms, "etc/alternatives", "dev", "usr"} {
		if err := makeDir(disk, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := copyLink(disk, "bin"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"usr", "opt", "opt/muster", ownPrograms, "etc/alternatives", "dev"} {
		if info, err := os.Lstat(filepath.Join(dir, path)); err != nil || !info.IsDir() {
			t.Errorf("%s is no directory: %v", path, err)
		}
	}
	if target, err := os.Readlink(filepath.Join(dir, "bin")); err != nil || target != "usr/bin" {
		t.Errorf("bin leads to %q: %v", target, err)
	}
	if left, err := os.ReadDir(host); err != nil || len(left) > 0 {
		t.Errorf("made outside the disk: %v, %v", left, err)
	}
	if _, err := os.Lstat(filepath.Join(host, "muster")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link was followed: %v", err)
	}
}
