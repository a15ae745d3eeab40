// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWrittenBy(t *testing.T) {
	at := place{"8:1", "/state/filesystems/fs-1/data/volume one"}
	for _, test := range []struct {
		want bool
		line string
	}{
		{true, `317 22 8:1 /state/filesystems/fs-1/data/volume\040one /var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pvc-2/mount rw,nodev - ext4 /dev/vda rw`},
		{true, `317 22 8:1 /state/filesystems/fs-1/data/volume\040one/a /mnt rw - ext4 /dev/vda rw`},
		{true, `317 22 8:1 /state/filesystems/fs-1/data /mnt rw - ext4 /dev/vda rw`},
		{true, `317 22 8:1 / / rw - ext4 /dev/vda rw`},
		{false, `317 22 8:1 /state/filesystems/fs-1/data/volume\040one /mnt ro,nodev - ext4 /dev/vda rw`},
		{false, `317 22 8:2 /state/filesystems/fs-1/data/volume\040one /mnt rw - ext4 /dev/vda rw`},
		{false, `317 22 8:1 /state/filesystems/fs-1/data/volume\040on /mnt rw - ext4 /dev/vda rw`},
		{false, `317 22 8:1 /state/machines/i-1/root / rw - ext4 /dev/vda rw`},
		{false, `317 22 8:1 /state`},
	} {
		got := false
		for _, one := range parseMounts(test.line) {
			got = at.writtenBy(one)
		}
		if got != test.want {
			t.Errorf("%t, want %t: %s", got, test.want, test.line)
		}
	}
}

// A directory is at the same place of its file system however it was opened.
func TestPlaceOf(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one", "a b"), filepath.Join(dir, "two")
	for _, path := range []string{one, two} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(filepath.Join(dir, "one"), two, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(two, 0); err != nil {
			t.Error(err)
		}
	})
	var places []place
	for _, path := range []string{one, filepath.Join(two, "a b")} {
		opened, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		at, err := placeOf(opened)
		if err := opened.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, at)
	}
	if places[0] != places[1] || filepath.Base(places[0].path) != "a b" {
		t.Errorf("%q", places)
	}
}
