// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/release"
)

// TestUpgradeWithNodeGroups takes a cluster and both of its node groups to the next minor and back again, the node groups
// at the same time, while the cluster's API server and pods on all nodes are asked without a pause: nothing fails. Up, the
// cluster goes first; back, the node groups do.
//
//story:about machine/nodegroup machine/plan cluster/updatecontroller plane/planerollout
//story:needs kubernetes MINOR=1.37
func TestUpgradeWithNodeGroups(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "2", "--timeout", "3m")
	i.muster("create", "nodegroup", "second", "--nodes", "2", "--wait")
	is, next := release.Default(), minorAfter(release.Default())
	i.nodesAre(is)
	i.apply(budgeted)
	i.mustKubectl("rollout", "status", "deployment/web", "--timeout=120s")
	ip, _ := i.balancerOf("web")

	p, pods := i.probe(), i.askWithoutRetry(ip)
	i.asks(p, 100)
	i.update("up", fmt.Sprintf("type: VersionUpdate, change: {version: %q}", next.Minor()))
	i.groupsGo("up", next)
	i.groupsGo("back", is)
	i.update("back", fmt.Sprintf("type: VersionRollback, change: {version: %q}", is.Minor()))
	i.asks(p, 100)
	i.failedNothing(p, "the cluster and its node groups went up and back")
	t.Logf("pods answered %d requests meanwhile", pods())
	i.ready()
	i.muster("down", "--delete")
}

// groupsGo takes both node groups to a release at the same time, and waits until their four nodes are of it.
func (i *installation) groupsGo(update string, to release.Release) {
	i.t.Helper()
	groups := []string{"default", "second"}
	for _, group := range groups {
		i.requestUpdate(update+"-"+group, fmt.Sprintf("type: VersionUpdate, nodeGroup: %s, change: {rollout: {version: %q}}", group, to.Minor()))
	}
	i.eventually("both node groups change at the same time", func() error {
		said, err := i.kubectl(managementContext, "-n", "muster", "get", "nodegroups", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.rollout.phase} {end}`)
		if err == nil && (strings.Contains(said, "= ") || len(strings.Fields(said)) != len(groups)) {
			err = errors.New(said)
		}
		return err
	})
	for _, group := range groups {
		took := i.updateIs(update+"-"+group, `"phase":"Successful"`)
		i.t.Logf("update %s-%s was seen to be successful after %s more", update, group, took)
	}
	i.nodesAre(to)
}
