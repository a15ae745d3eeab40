// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/machine/machine/local"
)

// forkBomb starts processes until it may not, with a shell of the machine's.
const forkBomb = `apiVersion: v1
kind: Pod
metadata: {name: bomb}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: muster.dev/workload:v1
    command: [/usr/bin/sh, -c, "while :; do sleep 1000 & done"]
    env: [{name: PATH, value: /usr/bin}]
    volumeMounts:
    - {name: usr, mountPath: /usr, readOnly: true}
    - {name: lib, mountPath: /lib, readOnly: true}
    - {name: lib64, mountPath: /lib64, readOnly: true}
  volumes:
  - {name: usr, hostPath: {path: /usr}}
  - {name: lib, hostPath: {path: /lib}}
  - {name: lib64, hostPath: {path: /lib64}}
`

// excessEndsInside has a pod start processes without end, and root on a machine take memory without end. Both end, and
// nothing else does: not their machine, not another one, and no control plane.
func excessEndsInside(t *testing.T, i *installation) {
	before := i.processes()
	i.apply(forkBomb)
	i.eventually("the pod has as many processes as it may have", func() error {
		phase, err := i.kubectl("get", "pod/bomb", "-o", "jsonpath={.status.phase}")
		if err == nil && phase != "Failed" {
			err = fmt.Errorf("it is %s", phase)
		}
		return err
	})
	if said := i.mustKubectl("logs", "pod/bomb"); !strings.Contains(strings.ToLower(said), "fork") {
		t.Errorf("the pod ended for another reason: %s", said)
	}
	i.mustKubectl("delete", "pod/bomb")

	running, err := local.Running(i.dir)
	if err != nil {
		t.Fatal(err)
	}
	// A machine's other processes are not what the kernel ends first.
	const hog = "echo 1000 >/proc/self/oom_score_adj; head -c 64G /dev/zero | tail >/dev/null"
	if out, talk, err := i.try("exec", slices.Sorted(maps.Keys(running))[0], "--", "sh", "-c", hog); !strings.Contains(fmt.Sprint(err), "137") { // SIGKILL
		t.Errorf("root on a machine takes 64 GiB of memory: %v\n%s%s", err, out, talk)
	}
	for name, p := range i.processes() {
		if before[name].PID != p.PID {
			t.Errorf("%s was process %d and is %d", name, before[name].PID, p.PID)
		}
	}
	i.ready()
	i.eventually("every kubelet answers", func() error {
		nodes, err := i.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
		errs := []error{err}
		for node := range strings.FieldsSeq(nodes) {
			_, err := i.kubectl("get", "--raw", "/api/v1/nodes/"+node+"/proxy/healthz")
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}
