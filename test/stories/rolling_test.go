// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// budgeted is a pod on each of four nodes behind a load balancer. One pod may be missing.
const budgeted = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - name: web
        image: muster.dev/workload:v1
        imagePullPolicy: IfNotPresent
        args: [serve]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 3}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 3
  selector: {matchLabels: {app: web}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

// TestRollingUpdate replaces the four machines of a group, two at once, while a Deployment with a budget is asked without
// a retry and the service is killed three times in each phase: no request fails, and at no time are more
// machines drained than was asked for. Under a budget that lets no pod go the update fails, says which budget, leaves the
// old nodes to take pods, and is undone as it asked to be; forced, and with no machine more than before, it goes through.
//
//story:about machine/nodegroup machine/plan cluster/updatecontroller cloud/eks/nodegroups
func TestRollingUpdate(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "4", "--timeout", "3m")
	i.apply(budgeted)
	i.mustKubectl("rollout", "status", "deployment/web", "--timeout=120s")
	ip, _ := i.balancerOf("web")
	i.patchGroup(`{"spec":{"drainTimeout":"60s","eks":{"updateConfig":{"maxUnavailable":2}}}}`)

	ended := i.askWithoutRetry(ip)
	i.requestUpdate("rolling", `type: VersionUpdate, nodeGroup: default, change: {rollout: {launchTemplate: {userData: "#!/bin/sh\ntrue"}}}`)
	for _, phase := range []string{"ScaleUp", "Upgrade", "ScaleDown"} {
		for range 3 {
			i.rolloutIs(phase)
			i.kill("serve")
		}
	}
	took := i.updateIs("rolling", `"phase":"Successful"`)
	asked := ended()
	t.Logf("the update took %s after its last phase had begun; %d requests were answered meanwhile", took, asked)
	i.fourMachinesAre("rolling")
	steps := i.mustKubectl(managementContext, "-n", "muster", "get", "update", "rolling", "-o", `jsonpath={range .status.steps[*]}{.name} {.startedAt} {.finishedAt}{"\n"}{end}`)
	t.Logf("its steps:\n%s", steps)
	if names := strings.Fields(steps); len(names) != 12 || names[3] != "ScaleUp" || names[6] != "Upgrade" || names[9] != "ScaleDown" {
		t.Errorf("its steps are %q", names)
	}

	i.mustKubectl("rollout", "status", "deployment/web", "--timeout=60s")
	i.mustKubectl("patch", "pdb", "web", "--type", "merge", "-p", `{"spec":{"minAvailable":4}}`)
	i.mustKubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=0", "--timeout=30s", "pdb/web")
	i.patchGroup(`{"spec":{"drainTimeout":"10s"}}`)
	i.requestUpdate("blocked", `type: VersionUpdate, nodeGroup: default, change: {rollout: {rollbackOnFailure: true, launchTemplate: {userData: "#!/bin/sh\nfalse || true"}}}`)
	i.updateIs("blocked", "The disruption budget web needs 4 healthy pods and has 4 currently")
	i.updateIs("blocked", `"phase":"Failed"`)
	if said := i.mustKubectl(managementContext, "-n", "muster", "get", "update", "blocked", "-o", "jsonpath={.status.errors}"); !strings.Contains(said, "PodEvictionFailure") || !strings.Contains(said, "disruption budget web") || !strings.Contains(said, "update blocked-undo takes the node group back") {
		t.Errorf("the update failed with %s", said)
	}
	i.updateIs("blocked-undo", `"phase":"Successful"`)
	if said := i.mustKubectl(managementContext, "-n", "muster", "get", "nodegroup", "default", "-o", "jsonpath={.spec.launchTemplate.userData}"); said != "#!/bin/sh\ntrue" {
		t.Errorf("the group went back to %q", said)
	}
	i.eventually("the old nodes take pods", func() error {
		if said := i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].spec.unschedulable}{.items[*].metadata.annotations.muster\\.dev/cordoned}"); said != "" {
			return fmt.Errorf("nodes are cordoned: %s", said)
		}
		return nil
	})
	i.fourMachinesAre("rolling")

	i.patchGroup(`{"spec":{"eks":{"updateConfig":{"updateStrategy":"MINIMAL"}}}}`)
	most := i.watchMachines()
	i.requestUpdate("forced", "type: VersionUpdate, nodeGroup: default, change: {rollout: {force: true}}")
	i.updateIs("forced", `"phase":"Successful"`)
	i.fourMachinesAre("forced")
	if n := most(); n > 4 {
		t.Errorf("there were %d machines at once, and four were to be the most", n)
	}
	i.muster("down", "--delete")
}

// patchGroup changes the default node group.
func (i *installation) patchGroup(patch string) {
	i.t.Helper()
	i.mustKubectl(managementContext, "-n", "muster", "patch", "nodegroup", "default", "--type", "merge", "-p", patch)
}

// askWithoutRetry sends requests to the pods at an address, each by a connection of its own, until it is ended, which
// says how many there were. No request may fail.
func (i *installation) askWithoutRetry(ip string) (end func() int64) {
	var sent, failed atomic.Int64
	ctx, cancel := context.WithCancel(i.t.Context())
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			client := balancerClient()
			for ctx.Err() == nil {
				_, err := askPod(context.WithoutCancel(ctx), client, "http://"+ip+"/")
				if sent.Add(1); err != nil && failed.Add(1) <= 5 {
					i.t.Errorf("request %d failed: %v", sent.Load(), err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	return func() int64 {
		cancel()
		clients.Wait()
		if failed.Load() > 0 {
			i.t.Errorf("%d of %d requests failed", failed.Load(), sent.Load())
		}
		return sent.Load()
	}
}

// rolloutIs waits until the rollout of the default node group is in a phase or in one after it, and holds it to two
// machines that are drained at once.
func (i *installation) rolloutIs(phase string) {
	i.t.Helper()
	order := []string{"ScaleUp", "Upgrade", "ScaleDown"}
	i.eventually("the rollout is in phase "+phase, func() error {
		said, err := i.kubectl(managementContext, "-n", "muster", "get", "nodegroup", "default", "-o", "jsonpath={.status.rollout.phase}|{.status.rollout.drainingMachines[*]}|{.status.conditions[?(@.type=='Ready')].message}")
		if err != nil {
			return err
		}
		is, rest, _ := strings.Cut(said, "|")
		draining, _, _ := strings.Cut(rest, "|")
		if drained := strings.Fields(draining); len(drained) > 2 {
			i.t.Fatalf("%v are drained at once", drained)
		}
		if slices.Index(order, is) < slices.Index(order, phase) {
			return errors.New(said)
		}
		return nil
	})
}

// fourMachinesAre waits until there are four machines, all of a rollout.
func (i *installation) fourMachinesAre(rollout string) {
	i.t.Helper()
	rollouts := strings.TrimSpace(strings.Repeat(rollout+" ", 4))
	i.eventually("the machines are of "+rollouts, func() error {
		said, err := i.kubectl(managementContext, "get", "machines", "-o", "jsonpath={.items[*].spec.rollout}")
		if err == nil && said != rollouts {
			err = fmt.Errorf("they are of %q", said)
		}
		return err
	})
}

// watchMachines looks at how many machines there are until it is asked for the most that it saw.
func (i *installation) watchMachines() (most func() int) {
	ctx, cancel := context.WithCancel(i.t.Context())
	seen := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if said, err := i.kubectl(managementContext, "get", "machines", "-o", "name"); err == nil { //nolint:contextcheck // kubectl has the test's
				n = max(n, len(strings.Fields(said)))
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		seen <- n
	}()
	return func() int {
		cancel()
		return <-seen
	}
}
