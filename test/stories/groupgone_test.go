// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const managementContext = "--context=muster-management"

const manyMachines = `apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {namespace: muster, name: many}
spec:
  name: many
  provider: simulated
  scalingConfig: {desiredSize: 60}
  labels: {example.com/pool: many}
`

// TestMachinesGo deletes machines: one that has a volume, and all of a group.
//
//story:about machine/nodegroup machine/plan machine/machine
func TestMachinesGo(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "2")
	i.ready()
	t.Run("an attached volume moves", func(t *testing.T) { attachedVolumeMoves(t, i.in(t)) })
	t.Run("no machine outlives its group", func(t *testing.T) { noMachineOutlivesItsGroup(t, i.in(t)) })
}

// noMachineOutlivesItsGroup deletes a node group at different moments of the making of its machines, and one by force.
func noMachineOutlivesItsGroup(t *testing.T, i *installation) {
	machines := func() int {
		out, err := i.kubectl("get", managementContext, "machines", "-o", `jsonpath={range .items[?(@.spec.nodeGroup=="many")]}{.metadata.name}{"\n"}{end}`)
		if err != nil {
			t.Error(err)
		}
		return len(strings.Fields(out))
	}
	nothingLeft := func() {
		t.Helper()
		i.eventually("no machine and no node of the group is left", func() error {
			if n := machines(); n > 0 {
				return fmt.Errorf("%d machines", n)
			}
			nodes, err := i.kubectl("get", "nodes", "-l", "example.com/pool=many", "-o", "name")
			if err == nil && nodes != "" {
				err = errors.New(nodes)
			}
			return err
		})
	}
	for _, deletion := range []struct {
		atLeast int
		cascade string // no garbage collector answers the last two
	}{{0, "background"}, {1, "foreground"}, {30, "orphan"}} {
		i.apply(manyMachines, managementContext)
		i.eventually("machines are made", func() error {
			if n := machines(); n < deletion.atLeast {
				return fmt.Errorf("%d machines", n)
			}
			return nil
		})
		i.mustKubectl("delete", managementContext, "-n=muster", "nodegroup", "many", "--cascade="+deletion.cascade, "--timeout=60s")
		if n := machines(); n > 0 {
			t.Errorf("the group is gone, and %d machines are there", n)
		}
		nothingLeft()
	}

	i.apply(manyMachines, managementContext)
	i.eventually("machines are made", func() error {
		if n := machines(); n < 60 {
			return fmt.Errorf("%d machines", n)
		}
		return nil
	})
	i.mustKubectl("delete", managementContext, "-n=muster", "nodegroup", "many", "--wait=false")
	_, _ = i.kubectl("patch", managementContext, "-n=muster", "nodegroup", "many", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`) // it may be gone already
	nothingLeft()
	i.ready()
}
