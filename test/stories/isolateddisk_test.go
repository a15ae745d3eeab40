// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/sparsedisk"
)

// filler is a pod with programs of its machine and a directory on the machine's disk.
const filler = `apiVersion: v1
kind: Pod
metadata: {name: filler}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: "muster.dev/workload:v1"
    args: [serve]
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: bin, mountPath: /usr, readOnly: true}
    - {name: lib, mountPath: /lib, readOnly: true}
    - {name: lib64, mountPath: /lib64, readOnly: true}
  volumes:
  - {name: data, emptyDir: {}}
  - {name: bin, hostPath: {path: /usr}}
  - {name: lib, hostPath: {path: /usr/lib}}
  - {name: lib64, hostPath: {path: /usr/lib64}}
`

// disksAreBounded has a pod fill the disk of its machine, and root on the machine, which is what the host's disk does
// not feel.
func disksAreBounded(t *testing.T, i *installation) {
	running, err := local.Running(i.dir)
	if err != nil || len(running) == 0 {
		t.Fatalf("the machines that run are %v: %v", running, err)
	}
	id := slices.Sorted(maps.Keys(running))[0]
	record, err := machine.ReadRecord(filepath.Join(i.dir.Machine(id), machine.RecordFile))
	if err != nil {
		t.Fatal(err)
	}
	i.apply(fmt.Sprintf(filler, record.PrivateDNSName))
	i.mustKubectl("wait", "--for=condition=Ready", "pod/filler", "--timeout=120s")
	inPod := func(script string) string {
		t.Helper()
		return i.mustKubectl("exec", "filler", "--", "/usr/bin/sh", "-c", "PATH=/usr/bin; "+script)
	}
	taken := func() int64 {
		t.Helper()
		bytes, err := sparsedisk.Written(i.dir.MachineDisk(id))
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}

	before, free := taken(), i.free()
	// At once, before the kubelet sees that its disk is full, and evicts the pod.
	said := inPod("fallocate -l 30G /data/big 2>&1; dd if=/dev/zero of=/data/more bs=1M count=1 2>&1; rm -f /data/big /data/more")
	if strings.Count(said, "No space left on device") != 2 {
		t.Errorf("a pod writes more than the disk of its machine has:\n%s", said)
	}
	if now := i.free(); now < free-10<<30 {
		t.Errorf("the host had %d MiB free and has %d", free>>20, now>>20)
	}

	i.muster("exec", id, "--", "sh", "-c", "pkill -STOP -x kubelet; fallocate -l 30G /big 2>/dev/null; dd if=/dev/zero of=/more bs=1M count=1 2>/dev/null; df --output=avail / | tail -1 | grep -x ' *0'")
	i.mustKubectl("create", "configmap", "written-meanwhile", "--from-literal=a=b")
	i.mustKubectl("delete", "configmap", "written-meanwhile")
	i.muster("exec", id, "--", "sh", "-c", "rm -f /big /more; pkill -CONT -x kubelet")

	inPod("dd if=/dev/urandom of=/data/much bs=1M count=256 conv=fsync 2>&1")
	full := taken()
	if full < before+200<<20 {
		t.Errorf("a pod has written 256 MiB, and the disk of its machine takes %d MiB, which were %d", full>>20, before>>20)
	}
	inPod("rm /data/much && sync /data")
	i.eventually("the host has the room back", func() error {
		if now := taken(); now > full-200<<20 {
			return fmt.Errorf("the disk takes %d MiB, which were %d", now>>20, full>>20)
		}
		return nil
	})
	if got := inPod("echo here >/data/file && cat /data/file"); strings.TrimSpace(got) != "here" {
		t.Errorf("the machine's disk holds %q", got)
	}
	i.mustKubectl("delete", "pod", "filler") // the steps that follow count containers
}

// free is the room of the disk that the state directory is on, in bytes.
func (i *installation) free() int64 {
	i.t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(string(i.dir), &stat); err != nil {
		i.t.Fatal(err)
	}
	return int64(stat.Bavail) * stat.Bsize
}
