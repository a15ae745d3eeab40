// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/release"
)

// TestUpgradeOfACluster takes a cluster from the default minor to the next one by an Update, as EKS's API makes it, while
// the cluster is asked and watched: nothing fails. Its node stays as it is until its node group is taken to the new
// minor, too. A way back is refused in words, and changes nothing.
//
//story:about plane/planerollout plane/clusterconfig cluster/serve cluster/updatecontroller machine/nodegroup platform/release
//story:needs kubernetes MINOR=1.37
func TestUpgradeOfACluster(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "1", "--timeout", "3m")
	is, next := release.Default(), release.Release{}
	for _, r := range release.All() {
		if r.Distance(is) == 1 {
			next = r
		}
	}
	i.nodesAre(is)
	followers := i.processes()

	p := i.probe()
	i.asks(p, 100)
	i.update("upgrade", fmt.Sprintf("type: VersionUpdate, change: {version: %q}", next.Minor()))
	i.asks(p, 200)
	i.failedNothing(p, "the control plane was upgraded")
	if said := i.mustKubectl("--context", "muster", "get", "--raw", "/version"); !strings.Contains(said, next.Version) {
		t.Errorf("it says that it is %s", said)
	}
	for _, name := range []string{component.ControllerManager, component.Scheduler} {
		if now := i.processes()[name]; now.PID == followers[name].PID {
			t.Errorf("%s is process %d, as before the upgrade", name, now.PID)
		}
	}
	i.nodesAre(is)

	for _, back := range []release.Release{is, release.All()[0]} {
		i.mustKubectl(managementContext, "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", fmt.Sprintf(`{"spec":{"version":%q}}`, back.Minor()))
		i.saysReady("cluster/muster", fmt.Sprintf("the control plane runs %s, and is not taken back to %s", next.Minor(), back.Minor()))
	}
	i.mustKubectl(managementContext, "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", fmt.Sprintf(`{"spec":{"version":%q}}`, next.Minor()))
	i.ready()

	i.update("nodes", fmt.Sprintf("type: VersionUpdate, nodeGroup: default, change: {rollout: {version: %q}}", next.Minor()))
	i.nodesAre(next)
	i.ready()
}

// update makes an Update of the cluster, and waits until it is Successful.
func (i *installation) update(name, spec string) {
	i.t.Helper()
	object := fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: Update, metadata: {namespace: muster, name: %s}, spec: {clusterName: muster, %s}}", name, spec)
	i.apply(object, managementContext)
	took := i.eventually("update "+name+" is successful", func() error {
		said, err := i.kubectl(managementContext, "-n", "muster", "get", "update", name, "-o", "jsonpath={.status}")
		if err == nil && !strings.Contains(said, `"phase":"Successful"`) {
			err = errors.New(said)
		}
		return err
	})
	i.t.Logf("update %s took %s", name, took)
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
