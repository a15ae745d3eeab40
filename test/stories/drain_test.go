// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// protected is one pod on each of two nodes. No pod may be missing, and each pod takes two seconds to end.
const protected = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 2
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - name: web
        image: muster.dev/workload:v1
        imagePullPolicy: IfNotPresent
        args: [serve]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 2
  selector: {matchLabels: {app: web}}
`

// TestScaleDownDrains scales a group down under a pod that may not go: the machine waits and serves, says what for,
// goes on waiting when the service is killed, and is ended as soon as the pod may go. The last machine waits for none,
// and neither does a cluster that is stopped.
//
//story:about machine/nodegroup machine/plan
func TestScaleDownDrains(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "2")
	i.apply(protected)
	i.mustKubectl("rollout", "status", "deployment/web", "--timeout=90s")
	nodesOfPods := func() []string {
		return strings.Fields(i.mustKubectl("get", "pods", "-l", "app=web", "--field-selector=status.phase=Running", "-o", `jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}`))
	}
	if on := nodesOfPods(); len(on) != 2 || on[0] == on[1] {
		t.Fatalf("the pods run on %q", on)
	}

	i.muster("scale", "nodegroup", "default", "1", "--wait")
	var machine, node string
	waits := func(when string) {
		t.Helper()
		i.eventually("the machine waits for the pod "+when, func() error {
			out, err := i.kubectl("get", managementContext, "machines", "-o",
				`jsonpath={range .items[?(@.status.phase=="Terminating")]}{.metadata.name}|{.status.nodeName}|{.status.conditions[?(@.type=="Drained")].message}{"\n"}{end}`)
			if err != nil {
				return err
			}
			parts := strings.Split(out, "|")
			if len(parts) != 3 || !strings.Contains(parts[2], "The disruption budget web needs 2 healthy pods and has 2 currently") {
				return fmt.Errorf("it says %q", out)
			}
			machine, node = parts[0], parts[1]
			return nil
		})
	}
	waits("at first")
	old := i.kill("serve")
	i.eventually("the service is back", func() error {
		if p, ok := i.processes()["serve"]; !ok || p.PID == old.PID {
			return errors.New("not started again")
		}
		_, err := i.status()
		return err
	})
	waits("after the service was killed")
	if on := nodesOfPods(); len(on) != 2 || on[0] == on[1] {
		t.Errorf("the pods run on %q", on)
	}
	state := i.mustKubectl("get", "node", node, "-o", `jsonpath={.spec.unschedulable} {.status.conditions[?(@.type=="Ready")].status}`)
	if state != "true True" {
		t.Errorf("the node is cordoned and Ready: %s", state)
	}
	if out, _ := i.muster("get", "machines"); !strings.Contains(out, "web") {
		t.Errorf("muster get machines does not say what is waited for:\n%s", out)
	}

	i.mustKubectl("delete", "pdb", "web")
	i.eventually("the machine is gone", func() error {
		out, err := i.kubectl("get", managementContext, "machines", machine, "--ignore-not-found", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	i.mustKubectl("rollout", "status", "deployment/web", "--timeout=60s")
	for _, on := range nodesOfPods() {
		if on == node {
			t.Errorf("a pod runs on %s, which is gone", node)
		}
	}

	i.apply(protected)
	i.mustKubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=0", "--timeout=30s", "pdb/web")
	i.muster("scale", "nodegroup", "default", "0")
	// Nothing is to take the last machine's place, so that no budget can ever be met: it is not waited for.
	i.eventually("the last machine is gone", func() error {
		out, err := i.kubectl("get", managementContext, "machines", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})

	i.muster("scale", "nodegroup", "default", "2", "--wait")
	i.mustKubectl("delete", "pods", "-l", "app=web") // each node gets one again, and not the first that came both
	i.mustKubectl("rollout", "status", "deployment/web", "--timeout=90s")
	i.mustKubectl("wait", "--for=jsonpath={.status.currentHealthy}=2", "--timeout=30s", "pdb/web")
	i.muster("scale", "nodegroup", "default", "1")
	waits("again")
	began := time.Now()
	i.muster("down", "--delete")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("down --delete waited %s for pods", took)
	}
}
