// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

const fullWorkload = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 8Mi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: filled}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: counts}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: "muster.dev/workload:v1"
    args: [count, -pause, 1ms, /data]
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts: [{name: v, mountPath: /data}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: kept}}]
---
apiVersion: v1
kind: Pod
metadata: {name: looks}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [serve], volumeMounts: [{name: v, mountPath: /data}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: kept, readOnly: true}}]
---
apiVersion: v1
kind: Pod
metadata: {name: fills}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [serve], volumeMounts: [{name: v, mountPath: /data}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: filled}}]
`

// TestFullVolumes has a pod fill the file system that volumes are on. Writes fail, which is told; nothing that was
// written is lost, the cluster is as it was, and all goes on once there is room.
//
//story:about storage/filestore storage/volumedriver
func TestFullVolumes(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.volumesOnDiskOf("64m")
	i.muster("up", "--nodes", "1")
	i.ready()
	i.apply(fullWorkload)
	i.mustKubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s")
	if told, err := i.toldCapacity(); err != nil || told <= 0 || told > 64<<20 {
		t.Errorf("the capacity told is %d, %v", told, err)
	}

	// A copy would be a slow one here, and is none.
	i.apply(fmt.Sprintf(copyClaim, "kept", "8Mi"))
	i.claimEvent("copy", "ProvisioningFailed", "are on tmpfs")
	i.mustKubectl("delete", "pvc/copy")

	if out, err := i.kubectl("exec", "fills", "--", "/workload", "fsync", "-n", "100000", "/data/file"); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Fatalf("filling a volume: %s, %v", out, err)
	}
	i.eventually("the pod that counts fails to write", func() error {
		got, err := i.kubectl("get", "pod", "counts", "-o", "jsonpath={.status.containerStatuses[0]['state','lastState'].terminated.message}")
		if err == nil && !strings.Contains(got, "no space left on device") {
			err = fmt.Errorf("it says %q", got)
		}
		return err
	})
	last, err := i.counted("looks")
	if err != nil || last == 0 {
		t.Fatalf("what was written before is %d, %v", last, err)
	}
	t.Logf("the volume that is full keeps %d numbers", last)
	for _, claim := range []string{"kept", "filled"} {
		i.claimEvent(claim, "HostDiskPressure", "MiB and")
	}
	i.eventually("muster get filesystems says so", func() error {
		if out, _ := i.muster("get", "filesystems"); !strings.Contains(out, "disk has less than") {
			return errors.New(out)
		}
		return nil
	})
	i.eventually("no capacity is told", func() error {
		told, err := i.toldCapacity()
		if err == nil && told != 0 {
			err = fmt.Errorf("%d", told)
		}
		return err
	})
	i.apply("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: more}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Mi}}}\n")
	i.claimEvent("more", "ProvisioningFailed", "MiB left")
	i.mustKubectl("create", "configmap", "while-full", "--from-literal=a=b") // etcd is on another disk

	i.mustKubectl("delete", "pod/fills", "pvc/filled")
	i.mustKubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/more", "--timeout=180s")
	took := i.eventually("the pod counts on, with nothing lost", func() error {
		now, err := i.counted("looks")
		if err == nil && now <= last {
			err = fmt.Errorf("at %d after %d", now, last)
		}
		return err
	})
	t.Logf("the pod counted on %s after the claim that waited was bound", took.Round(100*time.Millisecond))
	i.eventually("capacity is told again", func() error {
		told, err := i.toldCapacity()
		if err == nil && told == 0 {
			err = errors.New("none")
		}
		return err
	})
}

// volumesOnDiskOf has volumes on a small file system of their own.
func (i *installation) volumesOnDiskOf(size string) {
	i.t.Helper()
	i.mount("tmpfs", i.dir.FileSystems(), "tmpfs", "mode=0700,size="+size)
}

// claimEvent waits until an Event of a claim says something.
func (i *installation) claimEvent(claim, reason, says string) {
	i.t.Helper()
	i.eventually("an Event of claim "+claim+" says "+says, func() error {
		got, err := i.kubectl("get", "events", "--field-selector", "involvedObject.name="+claim+",reason="+reason, "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(got, says) {
			err = errors.New(got)
		}
		return err
	})
}

// toldCapacity is what the scheduler is told of the default class, in bytes.
func (i *installation) toldCapacity() (int64, error) {
	got, err := i.kubectl("get", "csistoragecapacities", "-n", "kube-system", "-o", "go-template={{range .items}}{{.capacity}}{{end}}")
	if err != nil {
		return 0, err
	}
	told, err := resource.ParseQuantity(got)
	return told.Value(), err
}
