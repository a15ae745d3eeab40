// SPDX-License-Identifier: Apache-2.0

package ec2instances

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
)

// match finds the machines that were asked for among instances.
func (s *source) match(subjects []facts.Subject, instances []types.Instance) map[facts.Subject][]policy.Machine {
	all := make([]described, 0, len(instances))
	for _, i := range instances {
		d := described{Machine: s.machine(i)}
		if i.State != nil {
			d.state = i.State.Name
		}
		all = append(all, d)
	}
	machines, owners := machinesOf(all), ownersOf(all)
	found := map[facts.Subject][]policy.Machine{}
	for _, subject := range subjects {
		if subject.Name == "" {
			found[subject] = machines(subject)
		} else {
			found[subject] = owners[ownedAs(subject.Name)]
		}
	}
	return found
}

// described is what EC2 says of an instance.
type described struct {
	policy.Machine
	state types.InstanceStateName
}

// machinesOf finds machines by node and by ID. A stopped instance is not a machine until it runs again. An instance
// that is being terminated, or has been, is a machine that is being deleted; EC2 gives a terminated instance no name.
func machinesOf(all []described) func(facts.Subject) []policy.Machine {
	live, gone := map[facts.Subject][]policy.Machine{}, map[facts.Subject][]policy.Machine{}
	seen := map[string]bool{}
	for _, d := range all {
		if seen[d.ID] { // it may have been found by name and by ID
			continue
		}
		seen[d.ID] = true
		m, to := d.Machine, live
		switch d.state {
		case types.InstanceStateNamePending, types.InstanceStateNameRunning:
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
	return func(subject facts.Subject) []policy.Machine {
		if found := live[subject]; len(found) > 0 {
			return found
		}
		return gone[subject][:min(1, len(gone[subject]))] // the name of several that are gone is one that is gone
	}
}

// ownersOf finds the instances that have each name and address, whatever they do: one that is stopped keeps its private
// addresses, and uses them when it starts again. Only one that has been terminated has nothing. An instance that was
// found in several ways may have changed in between; names and addresses from any of the answers count.
func ownersOf(all []described) map[string][]policy.Machine {
	owners := map[string][]policy.Machine{}
	for _, d := range all {
		if d.state == types.InstanceStateNameTerminated {
			continue
		}
		names := append(slices.Clone(d.Names), d.ID)
		if d.NodeName != "" {
			names = append(names, d.NodeName)
		}
		for _, a := range d.Addresses {
			names = append(names, a.String())
		}
		for _, n := range names {
			n = ownedAs(n)
			if !slices.ContainsFunc(owners[n], func(m policy.Machine) bool { return m.ID == d.ID }) {
				owners[n] = append(owners[n], d.Machine)
			}
		}
	}
	return owners
}

// ownedAs is what owners of a name are found by. A resource name is its instance's in any domain: it may be in DNS
// although the private DNS name is another one (user guide, "EC2 instance hostnames and domains").
func ownedAs(name string) string {
	if label := firstLabel(name); instanceID.MatchString(label) {
		return label
	}
	return name
}

func (s *source) machine(i types.Instance) policy.Machine {
	m := policy.Machine{ID: aws.ToString(i.InstanceId), NodeName: s.nodeName(i), Created: created(i)}
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

// created is when the instance was launched first. LaunchTime is the last start; the primary network interface is
// attached to an instance for as long as there is one.
func created(i types.Instance) time.Time {
	at := aws.ToTime(i.LaunchTime)
	for _, n := range i.NetworkInterfaces {
		if a := n.Attachment; a != nil && aws.ToInt32(a.DeviceIndex) == 0 && a.AttachTime != nil && (at.IsZero() || a.AttachTime.Before(at)) {
			at = *a.AttachTime
		}
	}
	return at
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
