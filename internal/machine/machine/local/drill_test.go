// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/drill"
	"muster.dev/muster/internal/node/bootreport"
)

// The root of a machine that puts something else in the place of a drill's files neither stops the host nor has it write
// elsewhere.
func TestDrillsOnAHostileDisk(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, put := range map[string]func(path string) error{
		"a named pipe": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory":  func(path string) error { return os.MkdirAll(filepath.Join(path, "in"), 0o700) },
		"a link":       func(path string) error { return os.Symlink(outside, path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, bootreport.HeldPrefix+drill.Held()[0])
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			disk, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = disk.Close() }()
			if err := hold(disk, drill.Held()[0]); err == nil {
				t.Error("it is taken for the drill's file")
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("a file was made outside the disk")
			}
			if err := hold(disk, ""); err != nil {
				t.Errorf("the drill does not end: %v", err)
			}
			if err := os.Rename(path, filepath.Join(dir, bootreport.FillerPath)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := fillDisk("", "i-0123456789abcdef0", disk, false); err != nil {
				t.Errorf("a full disk does not end: %v", err)
			}
		})
	}
}
