// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/loopdevice"
)

const copyClaim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: copy}
spec:
  accessModes: [ReadWriteOnce]
  dataSource: {kind: PersistentVolumeClaim, name: %s}
  resources: {requests: {storage: %s}}
`

const copiedWorkload = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: first}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: counts}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [count, -pause, 20ms, /data], volumeMounts: [{name: v, mountPath: /data}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: first}}]
`

const copyReader = `apiVersion: v1
kind: Pod
metadata: {name: reads}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [serve], volumeMounts: [{name: v, mountPath: /data}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: copy}}]
`

// TestCopiedVolumes has a claim get a copy of a volume that a pod writes meanwhile, on a file system where files share
// their content.
//
//story:about storage/filestore storage/volumedriver
func TestCopiedVolumes(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.volumesOnXFS()
	i.muster("up", "--nodes", "1")
	i.ready()
	i.apply(copiedWorkload)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/counts", "--timeout=120s")
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
	i.apply(fmt.Sprintf(copyClaim, "first", "8Mi"))
	i.mustKubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/copy", "--timeout=60s")
	after, err := i.counted("counts")
	if err != nil {
		t.Fatal(err)
	}
	i.mustKubectl("delete", "pod/counts", "pvc/first")
	i.eventually("the volume is gone", func() error {
		if left := i.volumes(); len(left) != 1 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
	i.apply(copyReader)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/reads", "--timeout=60s")
	if n, err := i.counted("reads"); err != nil || n < before || n > after {
		t.Errorf("the copy has %d, %v, and was made between %d and %d", n, err, before, after)
	}
}

// TestCopiedVolumesWithoutReflink has a claim wait for a copy while a pod writes, on a file system where files cannot
// share their content, and the pod's successor wait for the copy.
//
//story:about storage/filestore storage/volumedriver machine/machine/local
func TestCopiedVolumesWithoutReflink(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.volumesOnDiskOf("256m")
	i.muster("up", "--nodes", "1")
	i.ready()
	i.apply(copiedWorkload)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/counts", "--timeout=120s")
	i.apply(fmt.Sprintf(copyClaim, "first", "8Mi"))
	i.eventually("the claim says why it waits", func() error { return i.wantEvent("copy", "Stop the pods that have it") })
	before, err := i.counted("counts")
	if err != nil {
		t.Fatal(err)
	}
	i.mustKubectl("delete", "pod/counts")
	i.eventually("the volume is copied", func() error {
		got, err := i.kubectl("get", "pvc/copy", "-o", "jsonpath={.status.phase}")
		if err == nil && got != "Bound" {
			err = errors.New(got)
		}
		return err
	})
	if err := i.wantEvent("copy", "Copying "); err != nil {
		t.Error(err)
	}
	i.apply(copiedWorkload + "---\n" + copyReader)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/counts", "pod/reads", "--timeout=60s")
	if n, err := i.counted("reads"); err != nil || n < before {
		t.Errorf("the copy has %d, %v, and was made when there were %d at least", n, err, before)
	}
}

// wantEvent wants an Event of a claim that says something.
func (i *installation) wantEvent(claim, says string) error {
	got, err := i.kubectl("get", "events", "--field-selector", "involvedObject.name="+claim, "-o", "jsonpath={.items[*].message}")
	if err == nil && !strings.Contains(got, says) {
		err = fmt.Errorf("%q", got)
	}
	return err
}

// volumesOnXFS has volumes on an XFS of their own, which is a file outside the state directory.
func (i *installation) volumesOnXFS() {
	i.t.Helper()
	program, err := exec.LookPath("mkfs.xfs")
	if err != nil {
		i.t.Fatal("looking for what tools/testneeds.sh installs: ", err)
	}
	image, err := os.Create(filepath.Join(filepath.Dir(string(i.dir)), "volumes.xfs"))
	if err != nil {
		i.t.Fatal(err)
	}
	defer func() { _ = image.Close() }()
	if err := image.Truncate(1 << 30); err != nil {
		i.t.Fatal(err)
	}
	if out, err := exec.CommandContext(i.t.Context(), program, "-q", "-m", "reflink=1", image.Name()).CombinedOutput(); err != nil {
		i.t.Fatalf("%v: %s", err, out)
	}
	device, err := loopdevice.Attach(image, "muster-story", false)
	if errors.Is(err, loopdevice.ErrUnsupported) {
		i.t.Skip(err)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	i.attached = append(i.attached, device)
	i.mount(device.Node(), i.dir.FileSystems(), "xfs", "")
}
