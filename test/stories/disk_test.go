// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/loopdevice"
)

// TestFullDisk refuses to start on a disk that is full, and lives through one that becomes full: what was written is
// there when there is room again.
//
//story:about plane/supervise platform/atomicfile cluster/serve
func TestFullDisk(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.onDiskOf("100m")
	_, talk, err := i.try("up", "--provider", "simulated", "--nodes", "2")
	if err == nil || strings.Count(talk, "\n") != 1 || !strings.Contains(talk, "MiB left") {
		t.Fatalf("up on a disk that is too small (%v): %s", err, talk)
	}
	if found, err := os.ReadDir(string(i.dir)); err != nil || len(found) != 0 {
		t.Errorf("it left %v (%v)", found, err)
	}
	i.unmount()
	i.onDiskOf("1280m")
	i.muster("up", "--provider", "simulated", "--nodes", "2")
	i.ready()
	i.mustKubectl("create", "configmap", "before", "--from-literal=a=b")

	filler := filepath.Join(string(i.dir), ".new-filler")
	large := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(large, bytes.Repeat([]byte("x"), 900<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, filler)
	i.eventually("writes fail on the full disk", func() error {
		// etcd has room in files that are there already; large objects use it up.
		_, err := i.kubectl("create", "configmap", "large"+time.Now().Format("150405.000"), "--from-file="+large, "--request-timeout=5s")
		if err == nil {
			return errors.New("it still writes")
		}
		return nil
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	t.Logf("everything was ready again %s after there was room", i.ready())
	i.mustKubectl("get", "configmap", "before")
	i.mustKubectl("create", "configmap", "after", "--from-literal=a=b")
}

// onDiskOf mounts a small file system on the state directory.
func (i *installation) onDiskOf(size string) {
	i.t.Helper()
	i.mount("tmpfs", string(i.dir), "tmpfs", "mode=0700,size="+size)
}

// mount mounts a file system that is there until the installation has been deleted.
func (i *installation) mount(source, dir, kind, options string) {
	i.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		i.t.Fatal(err)
	}
	if err := unix.Mount(source, dir, kind, 0, options); err != nil {
		i.t.Fatal(err)
	}
	i.mounted = append(i.mounted, dir)
}

// unmount unmounts what was mounted, which nothing of the installation may hold any more.
func (i *installation) unmount() {
	i.t.Helper()
	for _, dir := range i.mounted {
		if err := unix.Unmount(dir, 0); err != nil {
			i.t.Errorf("unmounting %s: %v", dir, err)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
	}
	for _, device := range i.attached {
		if err := loopdevice.Detach(device); err != nil {
			i.t.Error(err)
		}
	}
	i.mounted, i.attached = nil, nil
}

// fill writes a file until nothing more fits.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for size := 1 << 20; size >= 512; size /= 2 {
		for {
			if _, err := file.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
}
