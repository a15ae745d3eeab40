// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/diskreserve"
	"muster.dev/muster/internal/platform/loopdevice"
)

// TestFullDisk refuses to start on a disk that is full, and lives through one that becomes full: control planes are read
// meanwhile, what was written is there when there is room again, and writes are taken by themselves.
//
//story:about plane/supervise plane/diskreserve plane/etcdspace platform/atomicfile cluster/serve
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
	i.onDiskOf("1500m")
	i.muster("up", "--provider", "simulated", "--nodes", "2")
	i.ready()
	i.mustKubectl("create", "configmap", "before", "--from-literal=a=b")

	filler := filepath.Join(string(i.dir), ".new-filler")
	fill(t, filler)
	took := i.eventually("the cluster's etcd says that the disk is full", func() error {
		out, _, err := i.try("status", "-o", "json")
		if err == nil && !strings.Contains(out, `"diskFull": true`) {
			err = errors.New(out)
		}
		return err
	})
	t.Logf("control planes take no writes %s after the disk was full", took)
	for end := time.Now().Add(readWhileFull); time.Now().Before(end); <-time.After(500 * time.Millisecond) {
		i.mustKubectl("get", "configmap", "before", "--request-timeout=5s")
		i.mustKubectl(managementContext, "get", "clusters", "-A", "--request-timeout=5s")
		if _, err := i.kubectl("create", "configmap", "meanwhile", "--request-timeout=5s"); err == nil {
			t.Fatal("a write was taken while the disk was full")
		}
	}
	if out, _, _ := i.try("status"); strings.Count(out, "the disk of the state directory is full") != 2 {
		t.Errorf("muster status does not say so of both planes: %s", out)
	}
	i.kill(component.Etcd)
	i.eventually("the cluster is read by an etcd that started on the full disk", func() error {
		_, err := i.kubectl("get", "configmap", "before", "--request-timeout=5s")
		return err
	})
	i.kill("serve")
	i.eventually("a service that started on the full disk says so", func() error {
		out, talk, err := i.try("status", "-o", "json")
		if strings.Contains(out, `"diskFull": true`) {
			return nil
		}
		return errors.Join(err, errors.New(out+talk))
	})
	i.mustKubectl("get", "configmap", "before", "--request-timeout=5s")
	i.kill(component.Etcd)
	i.eventually("that service looks after the cluster, too", func() error {
		_, err := i.kubectl("get", "configmap", "before", "--request-timeout=5s")
		return err
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	took = i.eventually("writes are taken again", func() error {
		_, err := i.kubectl("create", "configmap", "after", "--from-literal=a=b", "--request-timeout=5s")
		return err
	})
	t.Logf("writes were taken %s after there was room, and everything was ready %s later", took, i.ready())
	i.mustKubectl("get", "configmap", "before")
	i.mustKubectl(managementContext, "label", "cluster", "-n", "muster", "muster", "after=full")
	if _, err := os.Stat(diskreserve.Path(i.dir)); err != nil {
		t.Errorf("no part of the disk is held back again: %v", err)
	}
}

// readWhileFull is how long a full disk is looked at.
const readWhileFull = 20 * time.Second

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
