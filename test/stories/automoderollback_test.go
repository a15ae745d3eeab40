// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/release"
)

// TestAutoModeGoesBack upgrades a cluster whose control plane runs Karpenter, and takes it back: machines follow the upgrade,
// and go before the rollback. A first rollback is cancelled before the control plane's own steps, and the service is killed
// while machines go back. At no moment is a node newer than the API server.
//
//story:about cluster/karpentercontroller cluster/updatecontroller cluster/insight cloud/eks/clusters
//story:needs karpenter kubernetes MINOR=1.37
func TestAutoModeGoesBack(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--auto")
	k := &karpenter{newIAM(t, i), "general-purpose"}
	k.eventually("the NodePools are made", func() error {
		_, err := k.kubectl("get", "nodepools", "general-purpose", "system")
		return err
	})
	k.mustKubectl("patch", "nodepool", "general-purpose", "system", "--type=merge", "-p", `{"spec":{"disruption":{"consolidateAfter":"5s","budgets":[{"nodes":"100%"}]}}}`)
	k.mustKubectl("-n", "kube-system", "scale", "deployment", "coredns", "--replicas=0")
	k.wants("kept", 1, "{cpu: 500m, memory: 256Mi}")
	k.runs("kept", 1)
	is, next := release.Default(), minorAfter(release.Default())
	k.machinesAre(is, next)

	i.update("minor", fmt.Sprintf("type: VersionUpdate, change: {version: %q}", next.Minor()))
	began := time.Now()
	k.machinesAre(next, next)
	t.Logf("the newer API server to machines of its minor: %v", time.Since(began).Round(100*time.Millisecond))

	id := k.rollsBack(is)
	k.mustKubectl(managementContext, "-n", "muster", "annotate", "update", id, "muster.dev/cancel=true") // CancelUpdate: older AWS CLIs do not have it
	i.updateIs(id, `"phase":"Cancelled"`)
	k.serverIs(next)
	k.machinesAre(next, next)

	began = time.Now()
	id = k.rollsBack(is)
	if said := k.mustKubectl(managementContext, "-n", "muster", "get", "update", id, "-o", "jsonpath={.status.appliedAt}"); said != "" {
		t.Errorf("the cluster was changed at %s, before its machines", said)
	}
	i.kill("serve")
	k.machinesAre(is, next)
	t.Logf("the rollback to machines of its minor: %v", time.Since(began).Round(100*time.Millisecond))
	took := i.updateIs(id, `"phase":"Successful"`)
	t.Logf("and the control plane: %v more", took.Round(100*time.Millisecond))
	k.serverIs(is)
	k.machinesAre(is, is)
	k.runs("kept", 1)
	k.owned(1)
}

// rollsBack asks for a rollback by EKS's API, and returns the id of its Update once that has begun.
func (k *karpenter) rollsBack(to release.Release) string {
	k.t.Helper()
	var asked struct {
		Update struct{ ID, Type, Status string }
	}
	k.mustAWS(&asked, "eks", "update-cluster-version", "--name", "muster", "--kubernetes-version", to.Minor())
	if asked.Update.Type != "VersionRollback" {
		k.t.Errorf("it is an update %+v", asked.Update)
	}
	k.updateIs(asked.Update.ID, "before the control plane goes back")
	return asked.Update.ID
}

// serverIs checks the version of the API server.
func (k *karpenter) serverIs(want release.Release) {
	k.t.Helper()
	var said struct{ GitVersion string }
	if err := json.Unmarshal([]byte(k.mustKubectl("get", "--raw", "/version")), &said); err != nil || said.GitVersion != want.Version {
		k.t.Errorf("the API server is %s, and not %s: %v", said.GitVersion, want.Version, err)
	}
}

// machinesAre waits until the NodePool has machines and all are of a release. Meanwhile no node may be newer than the release
// that the API server has at most.
func (k *karpenter) machinesAre(want, server release.Release) {
	k.t.Helper()
	k.eventually("the machines are of "+want.Version, func() error {
		out, err := k.kubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.status.nodeInfo.kubeletVersion} {.metadata.labels.karpenter\.sh/nodepool}{"\n"}{end}`)
		if err != nil {
			return err
		}
		var versions []string
		for line := range strings.Lines(out) {
			version, pool, _ := strings.Cut(strings.TrimSpace(line), " ")
			if of, err := release.All().OfMinor(release.Minor(version)); err == nil && of.Distance(server) > 0 {
				k.t.Errorf("a node is of %s, and the API server of %s at most", version, server.Version)
			}
			if pool == k.pool {
				versions = append(versions, version)
			}
		}
		slices.Sort(versions)
		if !slices.Equal(slices.Compact(versions), []string{want.Version}) {
			return errors.New(out)
		}
		return nil
	})
}
