// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const snapshotWorkload = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: raw}
spec: {volumeMode: Block, accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: writes}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [serve], securityContext: {runAsUser: 0}, volumeDevices: [{name: v, devicePath: /dev/raw}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: raw}}]
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: efs, annotations: {snapshot.storage.kubernetes.io/is-default-class: "true"}}
driver: efs.csi.aws.com
deletionPolicy: Delete
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: kept}
driver: efs.csi.aws.com
deletionPolicy: Retain
`

const snapshotOf = `apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: %[1]s}
spec: {source: {persistentVolumeClaimName: %[2]s}%[3]s}
---
`

const restored = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: copy}
spec:
  accessModes: [ReadWriteOnce]
  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: first}
  resources: {requests: {storage: 8Mi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: rawcopy}
spec:
  volumeMode: Block
  accessModes: [ReadWriteOnce]
  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: raw}
  resources: {requests: {storage: 16Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: rawreads}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [serve], securityContext: {runAsUser: 0}, volumeDevices: [{name: v, devicePath: /dev/raw}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: rawcopy}}]
---
` + copyReader

// TestVolumeSnapshots makes snapshots of volumes that pods write meanwhile, restores them when the volumes are gone,
// and has them go with the cluster, all but one that is to be retained.
//
//story:about storage/filestore storage/volumedriver addons/addon addons/snapshotcontroller
//story:needs addons
func TestVolumeSnapshots(t *testing.T) {
	i := newInstallation(t)
	i.volumesOnXFS()
	i.withSnapshotController()
	i.apply(copiedWorkload + "---\n" + snapshotWorkload)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/counts", "pod/writes", "--timeout=120s")
	disk := func(pod string, args ...string) string {
		t.Helper()
		return i.mustKubectl(append([]string{"exec", pod, "--", "/workload", "disk"}, append(args, "/dev/raw")...)...)
	}
	disk("writes", "-write", "before")
	i.eventually("the pod has counted", func() error {
		if n, err := i.counted("counts"); err != nil || n == 0 {
			return fmt.Errorf("%d, %w", n, err)
		}
		return nil
	})
	before, err := i.counted("counts")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	i.apply(fmt.Sprintf(snapshotOf, "first", "first", "") + fmt.Sprintf(snapshotOf, "raw", "raw", "") + fmt.Sprintf(snapshotOf, "kept", "raw", ", volumeSnapshotClassName: kept"))
	i.mustKubectl("wait", "--for=jsonpath={.status.readyToUse}=true", "volumesnapshot/first", "volumesnapshot/raw", "volumesnapshot/kept", "--timeout=120s")
	t.Logf("three snapshots are ready %s after they were asked for", time.Since(begun).Round(100*time.Millisecond))
	after, err := i.counted("counts")
	if err != nil {
		t.Fatal(err)
	}
	if got := i.mustKubectl("get", "volumesnapshot/raw", "-o", "jsonpath={.status.restoreSize}"); got != "8Mi" {
		t.Errorf("the size to restore is %q", got)
	}
	disk("writes", "-write", "behind")
	i.mustKubectl("delete", "pod/counts", "pod/writes", "pvc/first", "pvc/raw")
	i.eventually("the volumes are gone", func() error {
		if left := i.volumes(); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})

	i.apply(restored)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/reads", "pod/rawreads", "--timeout=120s")
	if n, err := i.counted("reads"); err != nil || n < before || n > after {
		t.Errorf("the restored volume has %d, %v, and the snapshot was made between %d and %d", n, err, before, after)
	}
	if got, want := disk("rawreads"), fmt.Sprintf("%d before", 16<<20); got != want {
		t.Errorf("the restored disk has %q, want %q", got, want)
	}
	i.snapshotsGo()
}

// snapshotsGo deletes one snapshot, then the cluster with the others.
func (i *installation) snapshotsGo() {
	i.t.Helper()
	i.mustKubectl("delete", "volumesnapshot/first", "--timeout=60s")
	i.eventually("the snapshot is gone", func() error { return i.wantSnapshots(2) })
	i.mustKubectl("delete", "pod/reads", "pod/rawreads", "pvc/copy", "pvc/rawcopy", "--timeout=60s")
	if _, stderr, err := i.try("delete", "cluster", "muster"); err == nil || !strings.Contains(stderr, "holds 1 snapshot of volumes (default/raw)") {
		i.t.Fatalf("deleting a cluster with snapshots: %v: %s", err, stderr)
	}
	i.muster("delete", "cluster", "muster", "--cascade")
	if err := i.wantSnapshots(1); err != nil {
		i.t.Fatalf("beside the one that is to be retained: %v", err)
	}
	i.mustKubectl(managementContext, "delete", "volumesnapshots", "--all", "--timeout=60s")
	i.eventually("what was retained is gone", func() error { return i.wantSnapshots(0) })
}

// wantSnapshots compares how many snapshots there are in the management plane and on the disk.
func (i *installation) wantSnapshots(want int) error {
	files, err := filepath.Glob(filepath.Join(i.dir.FileSystems(), "fs-*", "snapshots", "*"))
	objects, listErr := i.kubectl(managementContext, "get", "volumesnapshots", "-o", "name")
	if err := errors.Join(err, listErr); err != nil {
		return err
	}
	if len(files) != want || len(strings.Fields(objects)) != want {
		return fmt.Errorf("there are %q and %q", files, objects)
	}
	return nil
}

// withSnapshotController brings up a cluster with the add-on.
func (i *installation) withSnapshotController() {
	i.t.Helper()
	if _, err := os.Stat(filepath.Join(i.bin, "addons", "snapshot-controller.tar")); err != nil {
		i.t.Fatalf("run `make addons` first, which builds the snapshot-controller: %v", err)
	}
	i.muster("up", "--nodes", "1")
	i.ready()
	begun := time.Now()
	i.muster("create", "addon", "snapshot-controller", "--wait")
	i.t.Logf("create addon to ACTIVE: %s", time.Since(begun).Round(100*time.Millisecond))
}

// TestVolumeSnapshotsWithoutReflink has the VolumeSnapshot say why there is none while pods write, on a file system
// that cannot share content, and be ready when they have stopped.
//
//story:about storage/filestore storage/volumedriver addons/addon addons/snapshotcontroller machine/machine/local
//story:needs addons
func TestVolumeSnapshotsWithoutReflink(t *testing.T) {
	i := newInstallation(t)
	i.volumesOnDiskOf("256m")
	i.withSnapshotController()
	i.apply(copiedWorkload + "---\n" + snapshotWorkload)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/counts", "pod/writes", "--timeout=120s")
	i.apply(fmt.Sprintf(snapshotOf, "first", "first", "") + fmt.Sprintf(snapshotOf, "raw", "raw", ""))
	for _, name := range []string{"first", "raw"} {
		i.eventually("snapshot "+name+" says why it is not made", func() error {
			got, err := i.kubectl("get", "volumesnapshot/"+name, "-o", "jsonpath={.status.readyToUse} {.status.error.message}")
			if err == nil && (!strings.HasPrefix(got, "false ") || !strings.Contains(got, "Stop the pods") || !strings.Contains(got, "tmpfs")) {
				err = errors.New(got)
			}
			return err
		})
	}
	i.mustKubectl("delete", "pod/counts", "pod/writes")
	i.eventually("the snapshots are ready", func() error {
		got, err := i.kubectl("get", "volumesnapshot", "-o", "jsonpath={.items[*].status.readyToUse}")
		if err == nil && strings.Count(got, "true") != 2 {
			err = errors.New(got)
		}
		return err
	})
	i.apply(restored)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/reads", "pod/rawreads", "--timeout=120s")
	if n, err := i.counted("reads"); err != nil || n == 0 {
		t.Errorf("the restored volume has %d, %v", n, err)
	}
	i.mustKubectl("delete", "pod/reads", "pod/rawreads", "pvc/copy", "pvc/rawcopy", "volumesnapshot/first", "volumesnapshot/raw", "--timeout=60s")
	if err := i.wantSnapshots(0); err != nil {
		t.Error(err)
	}
}
