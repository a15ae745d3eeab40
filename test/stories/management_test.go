// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const extraGroup = `apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {namespace: muster, name: extra}
spec:
  name: extra
  provider: simulated
  scalingConfig: {minSize: %s, desiredSize: %s, maxSize: 5}
  labels: {example.com/pool: extra}
`

// nodeGroupsByKubectl manages a node group without muster's own command line.
func nodeGroupsByKubectl(t *testing.T, i *installation) {
	const context = "--context=muster-management"
	path := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, extraGroup, "4", "2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := i.kubectl("apply", context, "-f", path); err == nil || !strings.Contains(err.Error(), "desiredSize must be from minSize to maxSize") {
		t.Errorf("a desired size below the minimum: %v", err)
	}
	i.apply(fmt.Sprintf(extraGroup, "0", "2"), context)
	ready := func(want string) {
		t.Helper()
		i.eventually(want+" nodes of the group are Ready", func() error {
			got, err := i.kubectl("get", context, "-n=muster", "nodegroup", "extra", "-o", "jsonpath={.status.readyReplicas}/{.status.replicas}")
			if err == nil && got != want+"/"+want {
				err = fmt.Errorf("it has %s", got)
			}
			return err
		})
	}
	ready("2")
	if nodes := strings.Fields(i.mustKubectl("get", "nodes", "-l", "example.com/pool=extra", "-o", "name")); len(nodes) != 2 {
		t.Errorf("%d nodes carry the group's label, not 2", len(nodes))
	}
	i.mustKubectl("scale", context, "-n=muster", "nodegroup", "extra", "--replicas=3")
	ready("3")
	i.mustKubectl("delete", context, "-n=muster", "nodegroup", "extra", "--timeout=60s")
	i.eventually("its nodes are gone", func() error {
		nodes, err := i.kubectl("get", "nodes", "-l", "example.com/pool=extra", "-o", "name")
		if err == nil && nodes != "" {
			err = errors.New(nodes)
		}
		return err
	})
	i.ready()
}

// secondService is refused on a state directory that one serves.
func secondService(t *testing.T, i *installation) {
	_, talk, err := i.try("serve")
	if err == nil || strings.Count(talk, "\n") != 1 || !strings.Contains(talk, "already runs") {
		t.Errorf("a second service (%v): %s", err, talk)
	}
}
