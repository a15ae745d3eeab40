// SPDX-License-Identifier: Apache-2.0

package networkinterface

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/instance"
	network "muster.dev/muster/internal/network/vpc"
)

// Interface is one as EC2 shows it: that of a machine, or an address of a cluster's API server.
type Interface struct {
	NetworkInterfaceID string                     `filter:"network-interface-id"`
	InterfaceType      string                     `filter:"interface-type"`
	Description        string                     `filter:"description"`
	Status             string                     `filter:"status"`
	MacAddress         string                     `filter:"mac-address"`
	PrivateDNSName     string                     `filter:"private-dns-name"`
	PrivateIPAddress   string                     `filter:"private-ip-address,addresses.private-ip-address"`
	SubnetID           string                     `filter:"subnet-id"`
	VpcID              string                     `filter:"vpc-id"`
	AvailabilityZone   string                     `filter:"availability-zone"`
	OwnerID            string                     `filter:"owner-id"`
	RequesterID        string                     `filter:"requester-id"`
	RequesterManaged   bool                       `filter:"requester-managed"`
	SourceDestCheck    bool                       `filter:"source-dest-check"`
	Groups             []instance.GroupIdentifier `filter:""`
	PrivateIPAddresses []instance.PrivateAddress
	IPv4Prefixes       []instance.Ipv4Prefix
	Attachment         *shownAttachment `filter:"attachment."`
	TagSet             []awstag.Tag

	primary bool `filter:"addresses.primary"` // of an interface without addresses, too
}

type shownAttachment struct {
	AttachmentID        string `filter:"attachment-id"`
	InstanceID          string `filter:"instance-id"`
	InstanceOwnerID     string `filter:"instance-owner-id"`
	Status              string `filter:"status"`
	DeviceIndex         int32  `filter:"device-index"`
	DeleteOnTermination bool   `filter:"delete-on-termination"`
	AttachTime          *time.Time
}

// groupView knows the groups of machines.
type groupView struct {
	groups   map[string]*v1alpha1.SecurityGroup
	clusters map[string]*v1alpha1.Cluster // by spec.name
	subnets  []v1alpha1.Subnet
}

func (a *Actions) viewGroups(ctx context.Context) (*groupView, error) {
	groups, err := a.ec2.SecurityGroups(ctx)
	if err != nil {
		return nil, err
	}
	var clusters v1alpha1.ClusterList
	if err := a.ec2.List(ctx, &clusters); err != nil {
		return nil, err
	}
	var subnets v1alpha1.SubnetList
	if err := a.ec2.List(ctx, &subnets); err != nil {
		return nil, err
	}
	v := &groupView{groups: map[string]*v1alpha1.SecurityGroup{}, clusters: map[string]*v1alpha1.Cluster{}, subnets: subnets.Items}
	for i := range groups {
		v.groups[groups[i].Name] = &groups[i]
	}
	for i := range clusters.Items {
		v.clusters[clusters.Items[i].Spec.Name] = &clusters.Items[i]
	}
	return v, nil
}

// named are groups by id and name.
func (v *groupView) named(ids ...string) []instance.GroupIdentifier {
	shown := []instance.GroupIdentifier{}
	for _, id := range ids {
		if id == "" {
			continue
		}
		one := instance.GroupIdentifier{GroupID: id}
		if g := v.groups[id]; g != nil {
			one.GroupName = g.Spec.GroupName
		}
		shown = append(shown, one)
	}
	return shown
}

// subnet is that of an id, nil if it is not there.
func (v *groupView) subnet(id string) *v1alpha1.Subnet {
	i := slices.IndexFunc(v.subnets, func(s v1alpha1.Subnet) bool { return s.Name == id })
	if i < 0 {
		return nil
	}
	return &v.subnets[i]
}

// allSubnets are those of all VPCs.
func (v *groupView) allSubnets(yield func(*v1alpha1.Subnet) bool) {
	for i := range v.subnets {
		if !yield(&v.subnets[i]) {
			return
		}
	}
}

// ofMachine are the groups that a machine is in: those that it names, or that of its cluster for one of a node group,
// or the VPC's default.
func (v *groupView) ofMachine(m *v1alpha1.Machine) []instance.GroupIdentifier {
	cluster, subnet := v.clusters[m.Spec.ClusterName], v.subnet(string(m.Spec.SubnetID))
	switch {
	case len(m.Spec.SecurityGroupIDs) > 0:
		return v.named(m.Spec.SecurityGroupIDs...)
	case m.Spec.Rendered() && cluster != nil:
		return v.named(cluster.Status.ClusterSecurityGroupID)
	case !m.Spec.Rendered() && subnet != nil:
		return v.named(v1alpha1.DefaultSecurityGroupID(subnet.Spec.VPCID))
	}
	return []instance.GroupIdentifier{}
}

// Interfaces are those of all machines, and the addresses of clusters' API servers. Without a call they have no owner.
func (a *Actions) Interfaces(ctx context.Context, call *awsfront.Call) ([]Interface, error) {
	v, err := a.viewGroups(ctx)
	if err != nil {
		return nil, err
	}
	var machines v1alpha1.MachineList
	if err := a.ec2.List(ctx, &machines); err != nil {
		return nil, err
	}
	owner := ""
	if call != nil {
		owner = call.Caller.Account()
	}
	var all []Interface
	for i := range machines.Items {
		m := &machines.Items[i]
		digits, launched := strings.TrimPrefix(m.Name, ec2id.Instance.Prefix), m.LaunchedAt().UTC().Truncate(time.Second)
		shown := Interface{
			NetworkInterfaceID: ec2id.NetworkInterface.Prefix + digits, InterfaceType: "interface", Status: "in-use", PrivateDNSName: m.Status.NodeName,
			SourceDestCheck: !m.Spec.DisableSourceCheck, Groups: v.ofMachine(m), TagSet: []awstag.Tag{}, primary: true,
			Attachment: &shownAttachment{AttachmentID: "eni-attach-" + digits, InstanceID: m.Name, InstanceOwnerID: owner, Status: "attached", DeleteOnTermination: true, AttachTime: &launched},
		}
		shown.at(v, owner, string(m.Spec.SubnetID), instance.AddressOf(m))
		shown.IPv4Prefixes = instance.PrefixesOf(m, shown.VpcID, v.allSubnets)
		all = append(all, shown)
	}
	for _, cluster := range v.clusters {
		for _, text := range cluster.Status.EndpointAddresses {
			address, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			sum := sha256.Sum256([]byte(cluster.Status.ClusterSecurityGroupID + " " + text))
			id := ec2id.NetworkInterface.New([ec2id.Entropy]byte(sum[:]))
			shown := Interface{
				NetworkInterfaceID: id, InterfaceType: "interface", Status: "in-use", Description: "Amazon EKS " + cluster.Spec.Name, SourceDestCheck: true,
				RequesterManaged: true, RequesterID: owner, TagSet: []awstag.Tag{}, primary: true,
				Groups:     v.named(append([]string{cluster.Status.ClusterSecurityGroupID}, cluster.Spec.SecurityGroupIDs...)...),
				Attachment: &shownAttachment{AttachmentID: "eni-attach-" + strings.TrimPrefix(id, ec2id.NetworkInterface.Prefix), InstanceOwnerID: "amazon-eks", Status: "attached", DeviceIndex: 1},
			}
			at := slices.IndexFunc(v.subnets, func(s v1alpha1.Subnet) bool {
				cidr, err := netip.ParsePrefix(s.Spec.CIDRBlock)
				return err == nil && s.Spec.VPCID == cluster.Status.VPCID && cidr.Contains(address)
			})
			if at >= 0 {
				shown.at(v, owner, v.subnets[at].Name, address)
			}
			all = append(all, shown)
		}
	}
	return all, nil
}

// at says where an interface is.
func (n *Interface) at(v *groupView, owner, subnetID string, address netip.Addr) {
	n.OwnerID, n.SubnetID = owner, subnetID
	if subnet := v.subnet(subnetID); subnet != nil {
		n.VpcID, n.AvailabilityZone = subnet.Spec.VPCID, subnet.Spec.AvailabilityZone
	}
	if address.IsValid() {
		n.PrivateIPAddress, n.MacAddress = address.String(), network.MAC(address).String()
		n.PrivateIPAddresses = []instance.PrivateAddress{{Primary: true, PrivateDNSName: n.PrivateDNSName, PrivateIPAddress: address.String()}}
	}
}

type describeInterfacesInput struct {
	ec2resource.Paged
	NetworkInterfaceIDs []string
}

type describeInterfacesOutput struct {
	NetworkInterfaces []Interface
	NextToken         string
}

func (a *Actions) describeNetworkInterfaces() awsfront.Spec[describeInterfacesInput, describeInterfacesOutput] {
	return awsfront.Spec[describeInterfacesInput, describeInterfacesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInterfacesInput) (*describeInterfacesOutput, error) {
			all, err := a.Interfaces(ctx, call)
			if err != nil {
				return nil, err
			}
			out := &describeInterfacesOutput{}
			out.NetworkInterfaces, out.NextToken, err = ec2resource.Choose(a.ec2, call, interfaceNoun(), all, in.NetworkInterfaceIDs, in.Paged)
			return out, err
		},
	}
}

func interfaceNoun() ec2resource.Noun[Interface] {
	return ec2resource.Noun[Interface]{
		Kind: ec2id.NetworkInterface, ID: func(n *Interface) string { return n.NetworkInterfaceID },
		Tags:   func(n *Interface) map[string]string { return awsresource.TagMap(n.TagSet) },
		Fields: awsresource.FiltersOf[Interface](),
		Rules: ec2filter.Rules{Names: []string{ // there are no public addresses and no IPv6
			"addresses.association.owner-id", "addresses.association.public-ip", "association.allocation-id", "association.association-id",
			"association.ip-owner-id", "association.public-dns-name", "association.public-ip", "ipv6-addresses.ipv6-address",
		}},
	}
}
