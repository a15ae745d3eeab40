// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/machine/podstatus/podstatustest"
)

// twin is a pod with all that a kubelet reports about: an init container, a sidecar, a volume, requests and limits.
const twin = `apiVersion: v1
kind: Pod
metadata: {name: twin-%[1]s, labels: {app: twin}}
spec:
  nodeSelector: {muster.dev/nodegroup: %[1]s}
  tolerations: [{key: pool, operator: Exists}]
  terminationGracePeriodSeconds: 5
  automountServiceAccountToken: false
  volumes: [{name: shared, emptyDir: {}}]
  initContainers:
  - {name: first, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [env]}
  - {name: beside, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve, -listen, ":8081"], restartPolicy: Always}
  containers:
  - name: web
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    args: [serve]
    resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: "1", memory: 64Mi}}
    volumeMounts: [{name: shared, mountPath: /shared, readOnly: true}]
`

// budgetedOnSimulated is six pods that take two seconds to end. One pod may be missing.
const budgetedOnSimulated = `apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: 6
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec:
      nodeSelector: {muster.dev/nodegroup: busy}
      tolerations: [{key: pool, operator: Exists}]
      terminationGracePeriodSeconds: 2
      containers: [{name: web, image: nobody.has/this:v1, resources: {requests: {cpu: 200m}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: many}
spec:
  minAvailable: 5
  selector: {matchLabels: {app: many}}
`

// others is a pod that is bound to a node without room for it, and a Job whose pod says how long it runs.
const others = `apiVersion: v1
kind: Pod
metadata: {name: large}
spec:
  nodeName: %s
  containers: [{name: web, image: nobody.has/this:v1, resources: {requests: {cpu: "1900m"}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: short}
spec:
  template:
    metadata: {annotations: {muster.dev/simulated-run-time: 2s}}
    spec:
      restartPolicy: Never
      nodeSelector: {muster.dev/nodegroup: busy}
      tolerations: [{key: pool, operator: Exists}]
      containers: [{name: work, image: nobody.has/this:v1}]
`

// TestSimulatedPods runs pods on simulated machines beside a local one. A pod is reported as the local machine's kubelet
// reports its twin; a Deployment becomes Available, is evicted as its budget lets it be, by kubectl and by a group that
// is scaled down, goes on when the simulator is killed, and is deleted with its grace period.
//
//story:about machine/machine/simulated machine/podstatus machine/nodegroup
func TestSimulatedPods(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.muster("create", "nodegroup", "busy", "--provider", "simulated", "--nodes", "3", "--simulate-pods", "--taints", "pool=busy:NoSchedule", "--wait")
	if taints := i.mustKubectl("get", "nodes", "-l", "muster.dev/nodegroup=busy", "-o", `jsonpath={.items[*].spec.taints[?(@.key=="pool")].effect}`); taints != strings.TrimSpace(strings.Repeat("NoSchedule ", 3)) {
		t.Errorf("the effects of the simulated nodes' taints by the key pool are %q", taints)
	}

	for _, group := range []string{"default", "busy"} {
		i.apply(fmt.Sprintf(twin, group))
	}
	i.mustKubectl("wait", "--for=condition=Ready", "--timeout=90s", "pods", "-l", "app=twin")
	i.eventually("the simulated pod is reported as the real one", func() error {
		if diff := cmp.Diff(podstatustest.Shape(i.pod("twin-default")), podstatustest.Shape(i.pod("twin-busy"))); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	i.mustKubectl("delete", "pods", "-l", "app=twin")

	i.apply(budgetedOnSimulated)
	i.mustKubectl("rollout", "status", "deployment/many", "--timeout=60s")
	least := i.watchAvailable("many", 5)
	nodes := strings.Fields(i.mustKubectl("get", "nodes", "-l", "muster.dev/nodegroup=busy", "-o", "jsonpath={.items[*].metadata.name}"))
	i.mustKubectl("drain", nodes[0], "--ignore-daemonsets", "--timeout=90s")
	if on := i.mustKubectl("get", "pods", "-l", "app=many", "--field-selector=spec.nodeName="+nodes[0], "-o", "name"); on != "" {
		t.Errorf("pods are on the drained node: %s", on)
	}
	i.mustKubectl("uncordon", nodes[0])

	before := i.mustKubectl("get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].status.containerStatuses[*].containerID}")
	old := i.kill("simulator")
	i.eventually("the simulator is back", func() error {
		if p, ok := i.processes()["simulator"]; !ok || p.PID == old.PID {
			return errors.New("not started again")
		}
		return nil
	})
	i.muster("scale", "nodegroup", "busy", "2", "--wait")
	i.eventually("two nodes are left", func() error {
		said, err := i.kubectl("get", "nodes", "-l", "muster.dev/nodegroup=busy", "-o", "name")
		if n := len(strings.Fields(said)); err == nil && n != 2 {
			err = errors.New(said)
		}
		return err
	})
	i.mustKubectl("rollout", "status", "deployment/many", "--timeout=60s")
	least()
	after := i.mustKubectl("get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].status.containerStatuses[*].containerID}")
	kept := 0
	for id := range strings.FieldsSeq(before) {
		if strings.Contains(after, id) {
			kept++
		}
	}
	if kept == 0 {
		t.Error("no pod kept its container when the simulator was killed")
	}

	i.apply(fmt.Sprintf(others, strings.Fields(i.mustKubectl("get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].spec.nodeName}"))[0]))
	i.mustKubectl("wait", "--for=condition=Complete", "--timeout=60s", "job/short")
	i.eventually("the pod without room is refused", func() error {
		said, err := i.kubectl("get", "pod", "large", "-o", "jsonpath={.status.phase} {.status.reason}")
		if err == nil && said != "Failed OutOfcpu" {
			err = errors.New(said)
		}
		return err
	})
	began := time.Now()
	i.mustKubectl("delete", "deployment", "many", "--cascade=foreground", "--timeout=90s")
	if took := time.Since(began); took < time.Second {
		t.Errorf("the pods were gone after %s, and have two seconds", took)
	}
	i.muster("down", "--delete")
}

// pod reads a pod.
func (i *installation) pod(name string) *corev1.Pod {
	i.t.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(i.mustKubectl("get", "pod", name, "-o", "json")), pod); err != nil {
		i.t.Fatal(err)
	}
	return pod
}

// watchAvailable looks at how many pods of a Deployment are ready until the returned function is called, and fails the test
// if it ever sees fewer than that.
func (i *installation) watchAvailable(deployment string, least int) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			said, err := i.kubectl("get", "deployment", deployment, "-o", "jsonpath={.status.availableReplicas}")
			n := 0
			if _, scanned := fmt.Sscan(said, &n); err == nil && scanned == nil && n < least {
				i.t.Errorf("%d pods of %s are available, and %d were to be the least", n, deployment, least)
			}
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() { close(done); <-ended }
}
