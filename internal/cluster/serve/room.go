// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

// roomOfHost is what this host, or the container that it is, has for local machines beside the control planes of the
// clusters that there are.
func roomOfHost(state statedir.Dir) *hostroom.Room {
	return hostroom.New(func() (capacity.Offer, error) {
		bounds, err := local.HostBounds()
		if err != nil {
			return capacity.Offer{}, err
		}
		clusters, err := state.ListClusters()
		return capacity.Host{CPUs: host.CPUs(), Memory: bounds.Memory}.Offer(len(clusters)), err
	})
}
