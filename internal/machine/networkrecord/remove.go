// SPDX-License-Identifier: Apache-2.0

package networkrecord

import (
	"fmt"
	"os"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/statedir"
)

// RemoveEndpoints takes the addresses of a cluster's API server from the VPCs.
func RemoveEndpoints(dir statedir.Dir, cluster string) error {
	all, err := vpc.List(dir.VPCs())
	if err != nil {
		return err
	}
	for _, description := range all {
		network, err := vpc.Open(dir.VPCs(), description.ID)
		if err != nil {
			return err
		}
		if err := network.RemoveEndpoint(cluster); err != nil {
			return fmt.Errorf("removing the endpoint of cluster %s from %s: %w", cluster, description.ID, err)
		}
	}
	return nil
}

// RemoveVPCs removes the networks of a state directory, whatever their descriptions say or whether there are any.
func RemoveVPCs(dir statedir.Dir) error {
	entries, err := os.ReadDir(dir.VPCs())
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("reading directory of VPCs to remove: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := vpc.Remove(dir.VPC(entry.Name())); err != nil {
			return err
		}
	}
	return vpc.Remove(dir.VPCs())
}
