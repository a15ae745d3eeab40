// SPDX-License-Identifier: Apache-2.0

package networkrecord

import (
	"context"
	"net/netip"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
)

// Routes are the routes of a VPC's router to the pods of machines.
type Routes struct{ network *vpc.Network }

// OpenRoutes opens the routes of the VPC of a cluster.
func OpenRoutes(c component.Config) (Routes, error) {
	network, err := vpc.Open(c.State.VPCs(), c.Network.VPCID)
	return Routes{network}, err
}

// SetRoute has the range of pods lead to a machine.
func (r Routes) SetRoute(_ context.Context, podCIDR netip.Prefix, via netip.Addr) error {
	return r.network.SetRoute(vpc.Route{PodCIDR: podCIDR, Machine: via})
}

// DeleteRoute removes the route to a range of pods.
func (r Routes) DeleteRoute(_ context.Context, podCIDR netip.Prefix) error {
	return r.network.DeleteRoute(podCIDR)
}
