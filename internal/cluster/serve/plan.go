// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"os"

	"muster.dev/muster/internal/cluster/clusterconfig"
	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/platform/statedir"
)

// Plan returns the processes that would run, and changes nothing. Ports that would be chosen are shown as 0.
func Plan(dir statedir.Dir, wanted clusterconfig.Config) ([]component.Spec, error) {
	binDir, err := FindPrograms()
	if err != nil {
		return nil, err
	}
	c := component.Config{State: dir, BinDir: binDir, Cluster: *wanted.Cluster, VPC: localMachinesPossible()}
	if raw, err := os.ReadFile(dir.Ports()); err == nil {
		if err := json.Unmarshal(raw, &c.Ports); err != nil {
			return nil, damagedPorts(dir, err)
		}
	}
	if port := wanted.Cluster.Spec.APIServer.Port; port != 0 {
		c.Ports.APIServer = int(port)
	}
	return component.Specs(c)
}
