// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/machine"
	"muster.dev/muster/internal/cluster/machine/local"
	"muster.dev/muster/internal/cluster/region"
	"muster.dev/muster/internal/cluster/vpc"
	"muster.dev/muster/internal/platform/statedir"
)

// plannedVPC stands for the id of a VPC that would be made.
const plannedVPC = "vpc-00000000000000000"

// lowestMachine is the place of the first machine's address in the range of the VPC.
const lowestMachine = 11

// defaultVPC returns the id and the range of the default VPC, which do not change once it is described. If there is none yet it gets a
// range, and one subnet, which is all of it, in the first zone of the region.
func defaultVPC(dir statedir.Dir, network string, in region.Region) (id, kept string, err error) {
	cidr, err := netip.ParsePrefix(network)
	if err != nil {
		return "", "", fmt.Errorf("reading spec.network.vpcCIDR: %w", err)
	}
	all, err := vpc.List(dir.VPCs())
	if err != nil {
		return "", "", err
	}
	for _, description := range all {
		if description.Default {
			return description.ID, description.CIDR.String(), nil
		}
	}
	description := vpc.Description{ID: "vpc-" + randomID(), CIDR: cidr.Masked(), Default: true}
	description.Subnets = []vpc.Subnet{{ID: "subnet-" + randomID(), Zone: in.Zones[0].Name, CIDR: description.CIDR}}
	return description.ID, description.CIDR.String(), vpc.Describe(dir.VPCs(), description)
}

// endpointInVPC keeps an address of the VPC for the cluster's API server, and has the VPC's process lead from there to it. The first cluster has the
// second address of the VPC, where the name server answers, too; the next ones have those from the fourth to the sixth.
func endpointInVPC(c component.Config) (netip.Addr, error) {
	if !c.VPC {
		return c.Endpoint()
	}
	pods, err := netip.ParsePrefix(c.Cluster.Spec.Network.PodCIDR)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("reading spec.network.podCIDR: %w", err)
	}
	network, err := vpc.Open(c.State.VPCs(), c.VPCID)
	if err != nil {
		return netip.Addr{}, err
	}
	all, err := network.Endpoints()
	if err != nil {
		return netip.Addr{}, err
	}
	name, address := c.Cluster.Spec.Name, vpc.Resolver(network.CIDR())
	used := map[netip.Addr]bool{}
	for _, e := range all {
		for _, taken := range e.Addresses {
			used[taken] = true
			if e.Cluster == name {
				address = taken
			}
		}
	}
	if !slices.ContainsFunc(all, func(e vpc.Endpoint) bool { return e.Cluster == name }) && used[address] {
		if address, err = machine.Allocate(below(network.CIDR()), used); err != nil {
			return netip.Addr{}, fmt.Errorf("finding an address for the API server in the VPC: %w", err)
		}
	}
	return address, network.SetEndpoint(vpc.Endpoint{
		Cluster: name, Addresses: []netip.Addr{address}, PodCIDR: pods, EgressSocket: c.State.EgressSocket(c.Dir.Namespace()),
		APIServer: netip.AddrPortFrom(netip.MustParseAddr(component.Loopback), uint16(c.Ports.APIServer)), //nolint:gosec // G115: a port
	})
}

// below is the part of a VPC's range whose addresses are for no machine.
func below(cidr netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(cidr.Addr(), max(cidr.Bits(), 29))
}

// randomID is what comes after the prefix of an id, as EC2 has it: 17 hexadecimal digits.
func randomID() string {
	raw := make([]byte, 9)
	_, _ = rand.Read(raw) // which never fails
	return hex.EncodeToString(raw)[:17]
}

// subnetsOf lists the subnets of all VPCs. Addresses below the eleventh of a subnet are kept for what is not a machine.
func subnetsOf(dir statedir.Dir) func() ([]machine.Subnet, error) {
	list := local.Subnets(dir)
	return func() ([]machine.Subnet, error) {
		subnets, err := list()
		for i, subnet := range subnets {
			address := subnet.CIDR.Addr()
			for range lowestMachine {
				subnets[i].Taken = append(subnets[i].Taken, address)
				address = address.Next()
			}
		}
		return subnets, err
	}
}

// removeVPCs removes the networks of a state directory, whatever their descriptions say or whether there are any.
func removeVPCs(dir statedir.Dir) error {
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
