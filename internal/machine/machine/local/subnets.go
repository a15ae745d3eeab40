// SPDX-License-Identifier: Apache-2.0

package local

import (
	"slices"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/statedir"
)

// Subnets returns a function that lists the subnets of all VPCs below a state directory, for a [machine.Store]: those
// of the default VPC first.
func Subnets(dir statedir.Dir) func() ([]machine.Subnet, error) {
	return func() ([]machine.Subnet, error) {
		all, err := vpc.List(dir.VPCs())
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(all, func(a, b vpc.Description) int {
			switch {
			case a.Default == b.Default:
				return 0
			case a.Default:
				return -1
			default:
				return 1
			}
		})
		var subnets []machine.Subnet
		for _, description := range all {
			network, err := vpc.Open(dir.VPCs(), description.ID)
			if err != nil {
				return nil, err
			}
			taken, err := network.Taken()
			if err != nil {
				return nil, err
			}
			for _, subnet := range description.Subnets {
				subnets = append(subnets, machine.Subnet{ID: subnet.ID, VPC: description.ID, Zone: subnet.Zone, CIDR: subnet.CIDR, Taken: taken})
			}
		}
		return subnets, nil
	}
}
