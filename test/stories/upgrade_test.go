// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/release"
)

// TestUpgradeOfACluster takes a cluster from the default minor to the next one by an Update, as EKS's API makes it, while
// the cluster is asked and watched: nothing fails, though the service is killed meanwhile. An upgrade whose API server
// does not start fails, and changes nothing. Workloads as upstream's upgrade suite has them live through it. The cluster's
// node stays as it is until its node group is taken to the new minor, too. A way back by more than a minor is refused in
// words, and changes nothing.
//
//story:about plane/planerollout plane/clusterconfig cluster/serve cluster/updatecontroller machine/nodegroup platform/release
//story:needs kubernetes MINOR=1.37
func TestUpgradeOfACluster(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "1", "--timeout", "3m")
	is, next := release.Default(), minorAfter(release.Default())
	i.nodesAre(is)
	i.failedUpgrade(is, next)
	i.startWorkloads()
	followers, containers, counted := i.processes(), i.workloadContainers(), i.workloadsGoOn(0)
	machines := i.namespacesOf(clusterconfig.DefaultClusterName)

	stop := i.keepAsking(machines[slices.Sorted(maps.Keys(machines))[0]])
	p := i.probe()
	i.asks(p, 100)
	i.update("upgrade", fmt.Sprintf("type: VersionUpdate, change: {version: %q}", next.Minor()))
	i.asks(p, 200)
	i.failedNothing(p, "the control plane was upgraded")
	stop()
	counted = i.workloadsGoOn(counted)
	if is := i.workloadContainers(); is != containers {
		t.Errorf("containers were\n%s\nand are\n%s", containers, is)
	}
	i.jobEnds()
	if said := i.mustKubectl("--context", "muster", "get", "--raw", "/version"); !strings.Contains(said, next.Version) {
		t.Errorf("it says that it is %s", said)
	}
	for _, name := range []string{component.ControllerManager, component.Scheduler} {
		if now := i.processes()[name]; now.PID == followers[name].PID {
			t.Errorf("%s is process %d, as before the upgrade", name, now.PID)
		}
	}
	i.nodesAre(is)

	i.asksVersion(release.All()[0].Minor())
	i.saysReady("cluster/muster", fmt.Sprintf("the control plane runs %s, and is taken back by one minor at most: to %s, not to %s", next.Minor(), is.Minor(), release.All()[0].Minor()))
	i.asksVersion(next.Minor())
	i.ready()

	i.update("nodes", fmt.Sprintf("type: VersionUpdate, nodeGroup: default, change: {rollout: {version: %q}}", next.Minor()))
	i.nodesAre(next)
	i.ready()
	i.workloadsAreReady()
	i.workloadsGoOn(counted)
}

// failedUpgrade asks for an upgrade whose API server cannot start: its folder is a file. The Update fails with why, the
// cluster runs on as it was, and is Ready again once its version is what it runs.
func (i *installation) failedUpgrade(is, next release.Release) {
	i.t.Helper()
	folder, before := i.cluster().Component(component.APIServerName(1)), i.processes()[component.APIServer]
	if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
		i.t.Fatal(err)
	}
	p := i.probe()
	i.requestUpdate("fails", fmt.Sprintf("type: VersionUpdate, change: {version: %q}", next.Minor()))
	i.updateIs("fails", `"phase":"Failed"`)
	if said := i.mustKubectl(managementContext, "-n", "muster", "get", "update", "fails", "-o", "jsonpath={.status.errors}"); !strings.Contains(said, "the API server with the change did not serve") || !strings.Contains(said, filepath.Base(folder)) {
		i.t.Errorf("the update failed with %s", said)
	}
	if said := i.mustKubectl(managementContext, "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={.status.version}"); said != is.Version {
		i.t.Errorf("the cluster says that it is %s", said)
	}
	i.asksVersion(is.Minor())
	i.saysReady("cluster/muster", "the API server answers")
	i.failedNothing(p, "an upgrade failed")
	if now := i.processes()[component.APIServer]; now.PID != before.PID {
		i.t.Errorf("kube-apiserver was process %d and is %d", before.PID, now.PID)
	}
	if err := os.Remove(folder); err != nil {
		i.t.Fatal(err)
	}
}

// minorAfter is the release of the minor after a release's.
func minorAfter(is release.Release) release.Release {
	for _, r := range release.All() {
		if r.Distance(is) == 1 {
			return r
		}
	}
	return release.Release{}
}

// asksVersion asks for a version of the cluster as people do by kubectl edit.
func (i *installation) asksVersion(minor string) {
	i.t.Helper()
	i.mustKubectl(managementContext, "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", fmt.Sprintf(`{"spec":{"version":%q}}`, minor))
}

// update makes an Update of the cluster, and waits until it is Successful. The service is killed as soon as the Update
// has changed the cluster.
func (i *installation) update(name, spec string) {
	i.t.Helper()
	i.requestUpdate(name, spec)
	i.updateIs(name, `"appliedAt"`)
	i.kill("serve")
	took := i.updateIs(name, `"phase":"Successful"`)
	i.t.Logf("update %s took %s", name, took)
}

// requestUpdate makes an Update of the cluster.
func (i *installation) requestUpdate(name, spec string) {
	i.t.Helper()
	i.apply(fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: Update, metadata: {namespace: muster, name: %s}, spec: {clusterName: muster, %s}}", name, spec), managementContext)
}

// updateIs waits until the status of an Update has something.
func (i *installation) updateIs(name, has string) (took time.Duration) {
	i.t.Helper()
	return i.eventually("update "+name+" has "+has, func() error {
		said, err := i.kubectl(managementContext, "-n", "muster", "get", "update", name, "-o", "jsonpath={.status}")
		if err == nil && !strings.Contains(said, has) {
			err = errors.New(said)
		}
		return err
	})
}

// saysReady waits until the condition Ready of an object says something.
func (i *installation) saysReady(object, says string) {
	i.t.Helper()
	i.eventually(object+" says so", func() error {
		said, err := i.kubectl(managementContext, "-n", "muster", "get", object, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
		if err == nil && !strings.Contains(said, says) {
			err = fmt.Errorf("it says %q, not %q", said, says)
		}
		return err
	})
}

// nodesAre waits until the cluster's nodes are Ready, and all of a release.
func (i *installation) nodesAre(of release.Release) {
	i.t.Helper()
	i.eventually("the nodes are of "+of.Version, func() error {
		said, err := i.kubectl("--context", "muster", "get", "nodes", "-o", `jsonpath={range .items[*]}{.status.nodeInfo.kubeletVersion} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for line := range strings.SplitSeq(said, "\n") {
			if line != of.Version+" True" {
				return errors.New(said)
			}
		}
		return nil
	})
}
