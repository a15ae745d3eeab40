// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/planeclient"
)

const (
	manyNodes = 300
	// manyAtOnce is a tenth of them.
	manyAtOnce = 30
	// manyDeployments have manyReplicas pods each. A tenth of the pods may be missing.
	manyDeployments, manyReplicas, manyLeast = 20, 30, 27
)

// manyBudgeted is one of the Deployments, with its budget.
const manyBudgeted = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[1]d}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d}}
    spec:
      terminationGracePeriodSeconds: 2
      containers: [{name: web, image: nobody.has/this:v1, resources: {requests: {cpu: 100m}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web-%[1]d}
spec:
  minAvailable: %[3]d
  selector: {matchLabels: {app: web-%[1]d}}
---
`

// manyUpdated is how long the update may take: thirty machines at once, each drained, and as many joins.
var manyUpdated = upstreamWait{20 * time.Minute, "the step itself: 300 machines join and 300 are drained"}

// TestUpdateOfThreeHundred updates 300 simulated machines with 600 pods, a tenth at once. At no time are more than 30
// machines drained or going, fewer than 300 Ready and not drained, or more than 330 there; and no Deployment has fewer
// pods than its budget keeps. The log has the CPU seconds and the memory of each process.
//
//story:about machine/nodegroup machine/plan machine/podstatus machine/machine/simulated
func TestUpdateOfThreeHundred(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", strconv.Itoa(manyNodes), "--simulate-pods", "--timeout", "10m")
	var documents strings.Builder
	for n := range manyDeployments {
		fmt.Fprintf(&documents, manyBudgeted, n, manyReplicas, manyLeast)
	}
	i.apply(documents.String())
	for n := range manyDeployments {
		i.mustKubectl("rollout", "status", fmt.Sprintf("deployment/web-%d", n), "--timeout=5m")
	}
	i.patchGroup(`{"spec":{"eks":{"updateConfig":{"maxUnavailablePercentage":10}}}}`)

	management, cluster := i.clientOf(i.dir.ManagementKubeconfig()), i.clientOf(i.cluster().Kubeconfig())
	before, began := i.processorTime(), time.Now()
	i.requestUpdate("rolling", `type: VersionUpdate, nodeGroup: default, change: {rollout: {launchTemplate: {userData: "#!/bin/sh\ntrue"}}}`)
	saw, most := manySeen{least: manyNodes, leastPods: manyReplicas}, map[string]float64{}
	i.upstream(manyUpdated, "the update is Successful", func() error {
		if err := saw.look(t.Context(), management, cluster); err != nil {
			t.Error(err)
		}
		for name, mib := range i.anonymousMemory() {
			most[name] = max(most[name], mib)
		}
		said, err := i.kubectl(managementContext, "-n", "muster", "get", "update", "rolling", "-o", "jsonpath={.status.phase}")
		if strings.Contains(said, "Failed") {
			t.Fatal(i.mustKubectl(managementContext, "-n", "muster", "get", "update", "rolling", "-o", "jsonpath={.status}"))
		}
		if err == nil && said != "Successful" {
			err = errors.New(said)
		}
		return err
	})
	t.Logf("%d machines in %.0f s: at most %d drained or going, %d there; at least %d Ready and not drained, %d of %d pods of a Deployment (%d looks)",
		manyNodes, time.Since(began).Seconds(), saw.going, saw.there, saw.least, saw.leastPods, manyReplicas, saw.looks)
	after := i.processorTime()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		t.Logf("%-50s %6.1f s of CPU, at most %5.0f MiB", name, after[name]-before[name], most[name])
	}
	if saw.going < manyAtOnce*2/3 {
		t.Errorf("never more than %d machines were replaced at once", saw.going)
	}
	i.muster("down", "--delete")
}

// clientOf makes a client of an API server.
func (i *installation) clientOf(kubeconfig string) client.Client {
	i.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		i.t.Fatal(err)
	}
	config.QPS = -1
	scheme, err := planeclient.Scheme()
	if err != nil {
		i.t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		i.t.Fatal(err)
	}
	return api
}

// manySeen is what was seen of an update.
type manySeen struct{ going, there, least, leastPods, looks int }

// look looks once, and says what must not be. The group is read before the machines: a machine that it had drained by
// then is drained, is going or is gone.
func (s *manySeen) look(ctx context.Context, management, cluster client.Client) error {
	s.looks++
	group := &v1alpha1.NodeGroup{}
	if err := management.Get(ctx, client.ObjectKey{Namespace: "muster", Name: "default"}, group); err != nil {
		return fmt.Errorf("reading the group: %w", err)
	}
	var machines v1alpha1.MachineList
	if err := management.List(ctx, &machines); err != nil {
		return fmt.Errorf("listing machines: %w", err)
	}
	var deployments appsv1.DeploymentList
	if err := cluster.List(ctx, &deployments, client.InNamespace("default")); err != nil {
		return fmt.Errorf("listing Deployments: %w", err)
	}
	going, ready := 0, 0
	for _, m := range machines.Items {
		drained := group.Status.Rollout != nil && slices.Contains(group.Status.Rollout.Draining, m.Name)
		switch {
		case drained || m.DeletionTimestamp != nil:
			going++
		case m.Status.Phase == v1alpha1.MachineReady:
			ready++
		}
	}
	s.going, s.there, s.least = max(s.going, going), max(s.there, len(machines.Items)), min(s.least, ready)
	for _, d := range deployments.Items {
		s.leastPods = min(s.leastPods, int(d.Status.AvailableReplicas))
	}
	if going > manyAtOnce || ready < manyNodes || len(machines.Items) > manyNodes+manyAtOnce || s.leastPods < manyLeast {
		return fmt.Errorf("of %d machines %d are drained or going and %d Ready and not drained; a Deployment had %d pods", len(machines.Items), going, ready, s.leastPods)
	}
	return nil
}

// processorTime is what each process of the installation has taken of processors so far, in seconds.
func (i *installation) processorTime() map[string]float64 {
	i.t.Helper()
	spent := map[string]float64{}
	for name, p := range i.processes() {
		raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "stat"))
		if err != nil {
			continue // it has ended meanwhile
		}
		// After the name in brackets, utime and stime are the 12th and 13th field, in hundredths of a second
		// (proc_pid_stat(5)).
		for _, field := range strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))[11:13] {
			ticks, err := strconv.ParseFloat(field, 64)
			if err != nil {
				i.t.Fatal(err)
			}
			spent[name] += ticks / 100
		}
	}
	return spent
}

// anonymousMemory is what each process holds that is of no file, in MiB.
func (i *installation) anonymousMemory() map[string]float64 {
	held := map[string]float64{}
	running, err := i.running()
	if err != nil {
		return held
	}
	for name, p := range running {
		raw, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "smaps_rollup"))
		for line := range strings.Lines(string(raw)) {
			if text, ok := strings.CutPrefix(line, "Anonymous:"); ok {
				kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 64)
				held[name] = kib / 1024
			}
		}
	}
	return held
}
