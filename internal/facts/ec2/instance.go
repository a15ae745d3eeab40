// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"muster.dev/muster/internal/facts"
	"muster.dev/muster/internal/policy"
)

// match finds the machines that were asked for among instances. One that has been stopped is none until it runs again; one that is
// being terminated is being deleted, and so is one that has been, which has no name any more.
func (s *source) match(subjects []facts.Subject, instances []types.Instance) map[facts.Subject][]policy.Machine {
	live, gone := map[facts.Subject][]policy.Machine{}, map[facts.Subject][]policy.Machine{}
	seen := map[string]bool{}
	for _, i := range instances {
		id := aws.ToString(i.InstanceId)
		if i.State == nil || seen[id] { // it may have been found by name and by ID
			continue
		}
		seen[id] = true
		var to map[facts.Subject][]policy.Machine
		m := s.machine(i)
		switch i.State.Name {
		case types.InstanceStateNamePending, types.InstanceStateNameRunning:
			to = live
		case types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated:
			m.Deleting = true
			to = gone
		default:
			continue
		}
		to[facts.Subject{ID: m.ID}] = []policy.Machine{m}
		if m.NodeName != "" {
			byNode := facts.Subject{Node: m.NodeName}
			to[byNode] = append(to[byNode], m)
		}
	}
	found := map[facts.Subject][]policy.Machine{}
	for _, subject := range subjects {
		switch {
		case len(live[subject]) > 0:
			found[subject] = live[subject]
		case len(gone[subject]) > 0: // the name of several that are gone is one that is gone
			found[subject] = gone[subject][:1]
		}
	}
	return found
}

func (s *source) machine(i types.Instance) policy.Machine {
	m := policy.Machine{ID: aws.ToString(i.InstanceId), NodeName: s.nodeName(i)}
	for _, t := range i.Tags {
		if aws.ToString(t.Key) == s.config.GroupTag {
			m.Group = aws.ToString(t.Value)
		}
	}
	name := func(names ...*string) {
		for _, n := range names {
			text := strings.ToLower(strings.TrimSuffix(aws.ToString(n), "."))
			if _, err := netip.ParseAddr(text); err != nil && validName(text) {
				m.Names = append(m.Names, text)
			}
		}
	}
	address := func(addresses ...*string) {
		for _, a := range addresses {
			if ip, err := netip.ParseAddr(aws.ToString(a)); err == nil && ip.Zone() == "" {
				m.Addresses = append(m.Addresses, ip.Unmap())
			}
		}
	}
	public := func(a *types.InstanceNetworkInterfaceAssociation) {
		if a != nil {
			name(a.PublicDnsName)
			address(a.PublicIp, a.CarrierIp, a.CustomerOwnedIp)
		}
	}
	name(i.PrivateDnsName, i.PublicDnsName)
	address(i.PrivateIpAddress, i.PublicIpAddress, i.Ipv6Address)
	for _, n := range i.NetworkInterfaces {
		name(n.PrivateDnsName)
		address(n.PrivateIpAddress)
		public(n.Association)
		for _, a := range n.PrivateIpAddresses {
			name(a.PrivateDnsName)
			address(a.PrivateIpAddress)
			public(a.Association)
		}
		for _, a := range n.Ipv6Addresses {
			address(a.Ipv6Address)
		}
	}
	slices.Sort(m.Names)
	m.Names = slices.Compact(m.Names)
	slices.SortFunc(m.Addresses, netip.Addr.Compare)
	m.Addresses = slices.Compact(m.Addresses)
	return m
}

// nodeName is the name that the instance's node has.
func (s *source) nodeName(i types.Instance) string {
	id, private := aws.ToString(i.InstanceId), strings.ToLower(aws.ToString(i.PrivateDnsName))
	switch s.config.NodeNames {
	case InstanceID:
		return id
	case ResourceName:
		// The subnet decides what the private DNS name is; the resource name is a name in DNS in any case.
		if strings.HasPrefix(private, id+".") {
			return private
		}
		return id + "." + regionDomain(s.config.Region)
	default:
		return private
	}
}

// regionDomain is the domain of private names (VPC user guide, "DNS attributes for your VPC").
func regionDomain(region string) string {
	if region == "us-east-1" {
		return "ec2.internal"
	}
	return region + ".compute.internal"
}
