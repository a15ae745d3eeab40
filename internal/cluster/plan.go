// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"os"

	"muster.dev/muster/internal/component"
	"muster.dev/muster/internal/config"
	"muster.dev/muster/internal/state"
)

// Plan is what would run, and changes nothing. Ports that would be chosen are shown as 0.
func Plan(dir state.Dir, wanted config.Config) ([]component.Spec, error) {
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
