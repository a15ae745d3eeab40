// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// attachedWorkload has a volume of a driver that attaches, and a pod of a node that uses it.
const attachedWorkload = `apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: attach.example.com}
spec: {attachRequired: true, podInfoOnMount: false}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  claimRef: {namespace: default, name: disk}
  csi: {driver: attach.example.com, volumeHandle: vol-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: disk, resources: {requests: {storage: 1Gi}}}
`

const attachedPod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  containers: [{name: c, image: "muster.dev/workload:v1", volumeMounts: [{name: v, mountPath: /data}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: disk}}]
`

// attachedVolumeMoves deletes a machine that has a volume attached and mounted, as EBS's driver attaches them. The test
// attaches in the driver's place, and the nodes are simulated: what is seen is what kube-controller-manager makes of
// the Node that goes.
func attachedVolumeMoves(t *testing.T, i *installation) {
	nodes := strings.Fields(i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	i.mustKubectl("annotate", "nodes", "--all", "volumes.kubernetes.io/controller-managed-attach-detach=true")
	i.apply(attachedWorkload)
	i.mustKubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/disk", "--timeout=30s")
	i.apply(fmt.Sprintf(attachedPod, "first", nodes[0]))
	i.attachVolume(nodes[0])
	i.mustKubectl("patch", "node", nodes[0], "--subresource=status", "--type=merge", "-p", `{"status": {"volumesInUse": ["kubernetes.io/csi/attach.example.com^vol-1"]}}`)
	i.eventually("the volume is attached", func() error {
		got, err := i.kubectl("get", "node", nodes[0], "-o", "jsonpath={.status.volumesInUse} {.status.volumesAttached[*].name}")
		if err == nil && strings.Count(got, "vol-1") != 2 {
			err = errors.New(got)
		}
		return err
	})
	i.apply(fmt.Sprintf(attachedPod, "second", nodes[1]))
	id := i.mustKubectl("get", "node", nodes[0], "-o", "jsonpath={.spec.providerID}")
	begun := time.Now()
	i.muster("delete", "machine", id[strings.LastIndexByte(id, '/')+1:])
	i.attachVolume(nodes[1])
	t.Logf("the volume is attached to another node %s after its machine was to be deleted", time.Since(begun).Round(100*time.Millisecond))
}

// attachVolume is what a driver's attacher does once kube-controller-manager asks for it.
func (i *installation) attachVolume(node string) {
	i.t.Helper()
	i.eventually("a volume is to be attached to "+node, func() error {
		got, err := i.kubectl("get", "volumeattachments", "-o", `jsonpath={range .items[*]}{.metadata.name}={.spec.nodeName}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for line := range strings.Lines(got) {
			if name, of, _ := strings.Cut(strings.TrimSpace(line), "="); of == node {
				_, err := i.kubectl("patch", "volumeattachment", name, "--subresource=status", "--type=merge", "-p", `{"status": {"attached": true}}`)
				return err
			}
		}
		return fmt.Errorf("there are %q", got)
	})
}
