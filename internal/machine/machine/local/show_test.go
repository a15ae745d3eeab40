// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"muster.dev/muster/internal/platform/host/hosttest"
)

// The file that a device is mounted at is made and not opened: package os would ask a program of the machine's (FUSE)
// whether the file is ready, and the whole service would wait for the answer.
func TestTargetIsNotPolled(t *testing.T) {
	fuse := hosttest.MountFuse(t)
	target := filepath.Join(fuse.Dir, "target")
	for range 2 {
		if err := makeTarget(target, true); err != nil {
			t.Fatal(err)
		}
	}
	if asked := fuse.End(); slices.Contains(asked, hosttest.FusePoll) || len(asked) == 0 {
		t.Errorf("the kernel asked for %v", asked)
	}
}

func TestMakeTarget(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "a", "device")
	for range 2 {
		if err := makeTarget(target, true); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Lstat(target); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("elsewhere", link); err != nil {
		t.Fatal(err)
	}
	if err := makeTarget(link, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); !os.IsNotExist(err) {
		t.Errorf("a link was followed: %v", err)
	}
}
