// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const blockWorkload = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: raw}
spec: {volumeMode: Block, accessModes: [ReadWriteMany], resources: {requests: {storage: 64Mi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: raw}
spec:
  selector: {matchLabels: {app: raw}}
  template:
    metadata: {labels: {app: raw}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: c, image: "muster.dev/workload:v1", args: [serve], securityContext: {runAsUser: 0}, volumeDevices: [{name: v, devicePath: /dev/raw}]}
      volumes: [{name: v, persistentVolumeClaim: {claimName: raw}}]
`

const blockReader = `apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [serve], securityContext: {runAsUser: 0}, volumeDevices: [{name: v, devicePath: /dev/raw}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: raw, readOnly: true}}]
`

// blockVolume has pods on two machines share a device, and looks that none is left of it, whatever is killed.
func (i *installation) blockVolume() {
	begun := time.Now()
	i.apply(blockWorkload)
	i.mustKubectl("rollout", "status", "daemonset/raw", "--timeout=60s")
	i.t.Logf("pods have the device %s after the claim was made", time.Since(begun).Round(100*time.Millisecond))
	pods := strings.Fields(i.mustKubectl("get", "pods", "-l", "app=raw", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(pods) != 2 {
		nodes := i.mustKubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}: since {.metadata.creationTimestamp}, taints {.spec.taints}, {.status.conditions[?(@.type=="Ready")]}{"\n"}{end}`)
		events := i.mustKubectl("get", "events", "-A", "--field-selector", "involvedObject.kind=Node", "--sort-by", ".lastTimestamp")
		i.t.Fatalf("pods %q, %s\nnodes:\n%s\nevents:\n%s", pods, i.mustKubectl("get", "daemonset/raw", "-o", "jsonpath={.status}"), nodes, events)
	}
	disk := func(pod string, args ...string) (string, error) {
		return i.kubectl(append([]string{"exec", pod, "--", "/workload", "disk"}, append(args, "/dev/raw")...)...)
	}
	want := func(pod, text string) {
		i.t.Helper()
		if got, err := disk(pod); err != nil || strings.TrimSpace(got) != text {
			i.t.Errorf("%s reads %q, %v; want %q", pod, got, err, text)
		}
	}
	if out, err := disk(pods[0], "-write", "hello"); err != nil {
		i.t.Fatalf("%v: %s", err, out)
	}
	want(pods[1], "67108864 hello")
	if n := len(i.loopDevices()); n != 1 {
		i.t.Errorf("%d devices of the volume", n)
	}
	i.apply(blockReader)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/reader", "--timeout=60s")
	want("reader", "67108864 hello")
	if out, err := disk("reader", "-write", "no"); err == nil {
		i.t.Errorf("a pod that may only read writes: %s", out)
	}
	i.mustKubectl("patch", "pvc", "raw", "-p", `{"spec": {"resources": {"requests": {"storage": "128Mi"}}}}`)
	took := i.eventually("the device grows while pods have it", func() error {
		got, err := disk(pods[1])
		if err == nil && strings.TrimSpace(got) != "134217728 hello" {
			err = errors.New(got)
		}
		return err
	})
	i.mustKubectl("wait", "--for=jsonpath={.status.capacity.storage}=128Mi", "pvc/raw", "--timeout=20s")
	i.t.Logf("the device has grown %s after the claim", took.Round(100*time.Millisecond))
	i.kill("serve")
	i.killInMachine("kubelet")
	i.eventually("the service answers", func() error { _, err := i.status(); return err })
	i.eventually("pods have the device, kubelets having begun again", func() error {
		for _, pod := range pods {
			if got, err := disk(pod, "-write", "again"); err != nil || strings.TrimSpace(got) != "134217728 again" {
				return fmt.Errorf("%s: %q, %w", pod, got, err)
			}
		}
		return nil
	})
	i.mustKubectl("delete", "pod/reader", "daemonset/raw")
	i.eventually("no device is left", func() error {
		if left := i.loopDevices(); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
	i.apply(blockReader)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/reader", "--timeout=60s")
	want("reader", "134217728 again")
	i.mustKubectl("delete", "pod/reader", "pvc/raw")
	i.eventually("the disk goes with the claim", func() error {
		if left := append(i.loopDevices(), i.disks()...); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
}

const attachedFile = "/var/tmp/attached"

// attachFile has a program of a machine make a file a block device, as upstream's tests of local volumes do, and
// returns its name.
func (i *installation) attachFile(machine string) string {
	i.t.Helper()
	out, _ := i.muster("exec", machine, "--", "sh", "-c", "truncate -s 1M "+attachedFile+" && losetup -f "+attachedFile+" && losetup -n -O NAME -j "+attachedFile)
	name := filepath.Base(strings.TrimSpace(out))
	if _, err := os.Stat(filepath.Join("/sys/block", name, "loop")); err != nil {
		i.t.Fatalf("losetup on a machine says %q: %v", out, err)
	}
	return name
}

// loopDevices are the block devices of volumes.
func (i *installation) loopDevices() []string {
	i.t.Helper()
	all, err := attachedBelow(i.dir.FileSystems())
	if err != nil {
		i.t.Fatal(err)
	}
	return all
}

// disks are the files of raw block volumes.
func (i *installation) disks() []string {
	i.t.Helper()
	var all []string
	for _, path := range i.volumes() {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			all = append(all, path)
		}
	}
	return all
}
