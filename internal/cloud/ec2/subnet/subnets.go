// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/ec2vpc"
)

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "CreateSubnet", a.createSubnet())
	ec2resource.Register(a.ec2, f, "DeleteSubnet", a.deleteSubnet())
	ec2resource.Register(a.ec2, f, "DescribeSubnets", a.describeSubnets())
	ec2resource.Register(a.ec2, f, "ModifySubnetAttribute", a.modifySubnetAttribute())
	a.ec2.Tagged(ec2resource.ObjectTags(a.ec2, ec2id.Subnet, "subnet", func() *v1alpha1.SubnetList { return &v1alpha1.SubnetList{} }, func(l *v1alpha1.SubnetList) []v1alpha1.Subnet { return l.Items },
		func(s *v1alpha1.Subnet) *v1alpha1.Tags { return &s.Spec.Tags }, a.subnetConditions))
	a.ec2.VPCUsers = append(a.ec2.VPCUsers, func(ctx context.Context, vpc string) ([]string, error) {
		subnets, err := a.ec2.SubnetsOf(ctx, vpc)
		return ec2resource.SubnetNames(subnets), err
	})
	a.ec2.SubnetUsers = append(a.ec2.SubnetUsers, a.addressUsers, a.mountTargetsIn)
}

// subnet is a subnet as EC2 shows it.
type subnet struct {
	SubnetID                      string `filter:"subnet-id"`
	SubnetArn                     string `filter:"subnet-arn"`
	VpcID                         string `filter:"vpc-id"`
	OwnerID                       string `filter:"owner-id"`
	State                         string `filter:"state"`
	CidrBlock                     string `filter:"cidr,cidr-block,cidrBlock"`
	AvailabilityZone              string `filter:"availability-zone,availabilityZone"`
	AvailabilityZoneID            string `filter:"availability-zone-id,availabilityZoneId"`
	AvailableIPAddressCount       int32  `filter:"available-ip-address-count"`
	DefaultForAz                  bool   `filter:"default-for-az,defaultForAz"`
	MapPublicIPOnLaunch           bool   `filter:"map-public-ip-on-launch"`
	MapCustomerOwnedIPOnLaunch    bool   `filter:"map-customer-owned-ip-on-launch"`
	AssignIpv6AddressOnCreation   bool
	EnableDNS64                   bool           `filter:"enable-dns64"`
	Ipv6Native                    bool           `filter:"ipv6-native"`
	PrivateDNSNameOptionsOnLaunch dnsNameOptions `filter:"private-dns-name-options-on-launch."`
	Tags                          []awstag.Tag
}

type dnsNameOptions struct {
	HostnameType                    string `filter:"hostname-type"`
	EnableResourceNameDNSARecord    bool   `filter:"enable-resource-name-dns-a-record"`
	EnableResourceNameDNSAAAARecord bool   `filter:"enable-resource-name-dns-aaaa-record"`
}

type describeSubnetsInput struct {
	ec2resource.Paged
	SubnetIDs []string
}

type describeSubnetsOutput struct {
	Subnets   []subnet
	NextToken string
}

func (a *Actions) describeSubnets() awsfront.Spec[describeSubnetsInput, describeSubnetsOutput] {
	return awsfront.Spec[describeSubnetsInput, describeSubnetsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeSubnetsInput) (*describeSubnetsOutput, error) {
			subnets, err := a.ec2.SubnetsOf(ctx, "")
			if err != nil {
				return nil, err
			}
			shown, err := a.showSubnets(ctx, call, subnets)
			if err != nil {
				return nil, err
			}
			out := &describeSubnetsOutput{}
			out.Subnets, out.NextToken, err = ec2resource.Choose(a.ec2, call, subnetNoun(), shown, in.SubnetIDs, in.Paged)
			return out, err
		},
	}
}

func subnetNoun() ec2resource.Noun[subnet] {
	return ec2resource.Noun[subnet]{
		Kind: ec2id.Subnet, ID: func(s *subnet) string { return s.SubnetID }, Tags: func(s *subnet) map[string]string { return awsresource.TagMap(s.Tags) },
		Fields: awsresource.FiltersOf[subnet](),
		Rules: ec2filter.Rules{Names: []string{ // there are no outposts and no IPv6
			"customer-owned-ipv4-pool", "enable-lni-at-device-index", "ipv6-cidr-block-association.association-id",
			"ipv6-cidr-block-association.ipv6-cidr-block", "ipv6-cidr-block-association.state", "outpost-arn",
		}},
	}
}

// showSubnets shows subnets with the addresses that are free now.
func (a *Actions) showSubnets(ctx context.Context, call *awsfront.Call, subnets []v1alpha1.Subnet) ([]subnet, error) {
	main, err := a.vpcs.DefaultVPC(ctx)
	if err != nil {
		return nil, err
	}
	taken, err := a.taken(ctx, subnets)
	if err != nil {
		return nil, err
	}
	all := make([]subnet, 0, len(subnets))
	for i := range subnets {
		s := &subnets[i]
		shown := subnet{
			SubnetID: s.Name, SubnetArn: a.ec2.ARN(call, "subnet/"+s.Name), VpcID: s.Spec.VPCID, OwnerID: call.Caller.Account(), State: "pending",
			CidrBlock: s.Spec.CIDRBlock, AvailabilityZone: s.Spec.AvailabilityZone, MapPublicIPOnLaunch: s.Spec.MapPublicIPOnLaunch, Tags: awsresource.ShownTags(s.Spec.Tags),
		}
		shown.PrivateDNSNameOptionsOnLaunch.HostnameType = "ip-name"
		if zone, err := a.ec2.Place.Zone(s.Spec.AvailabilityZone); err == nil {
			shown.AvailabilityZoneID = zone.ID
			at := slices.Index(a.ec2.Place.Zones[:], zone)
			shown.DefaultForAz = main != nil && main.Name == s.Spec.VPCID && ec2vpc.DefaultSubnet(at).String() == s.Spec.CIDRBlock
		}
		if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady) || !s.DeletionTimestamp.IsZero() {
			shown.State = "available"
		}
		if cidr, err := netip.ParsePrefix(s.Spec.CIDRBlock); err == nil {
			shown.AvailableIPAddressCount = int32(max(1<<(32-cidr.Bits())-ec2resource.NotForMachines-taken[s.Name], 0)) //nolint:gosec // G115: a /16 at most
		}
		all = append(all, shown)
	}
	return all, nil
}

// taken is how many addresses of each subnet machines with their pods, the endpoints of clusters and NAT gateways have.
func (a *Actions) taken(ctx context.Context, subnets []v1alpha1.Subnet) (map[string]int, error) {
	taken, seen := map[string]int{}, map[string]bool{}
	nats, err := a.gateways.NatGateways().List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range subnets {
		vpc := subnets[i].Spec.VPCID
		if seen[vpc] {
			continue
		}
		seen[vpc] = true
		all, err := a.ec2.Usage(vpc)
		if err != nil {
			return nil, fmt.Errorf("looking who has addresses of %s: %w", vpc, err)
		}
		for _, usage := range all {
			taken[usage.ID] = 1<<(32-usage.CIDR.Bits()) - ec2resource.NotForMachines - usage.Free()
		}
	}
	for i := range nats {
		if nats[i].Data.FailureCode == "" {
			taken[nats[i].Data.Subnet]++
		}
	}
	return taken, nil
}

// addressUsers names who has addresses of a subnet, and the clusters that keep it for their pods.
func (a *Actions) addressUsers(ctx context.Context, s *v1alpha1.Subnet) ([]string, error) {
	all, err := a.ec2.Usage(s.Spec.VPCID)
	if err != nil {
		return nil, fmt.Errorf("looking who has addresses of %s: %w", s.Name, err)
	}
	for _, usage := range all {
		if usage.ID != s.Name {
			continue
		}
		users := slices.Clone(usage.Machines)
		for _, id := range usage.PodMachines {
			if !slices.Contains(users, id) {
				users = append(users, "the pods of "+id)
			}
		}
		for _, address := range usage.Taken {
			if usage.CIDR.Contains(address) {
				users = append(users, "the endpoint of a cluster at "+address.String())
			}
		}
		keeping, err := a.keepingForPods(ctx, s)
		return append(users, keeping...), err
	}
	return nil, nil
}

// keepingForPods names the clusters that keep a subnet for their pods.
func (a *Actions) keepingForPods(ctx context.Context, s *v1alpha1.Subnet) ([]string, error) {
	var all v1alpha1.ClusterList
	if err := a.ec2.List(ctx, &all); err != nil {
		return nil, err
	}
	var names []string
	for i := range all.Items {
		if c := &all.Items[i]; c.Status.VPCID == s.Spec.VPCID && slices.Contains(c.Spec.Network.PodSubnetIDs, v1alpha1.SubnetID(s.Name)) {
			names = append(names, "cluster "+c.Spec.Name+" for its pods")
		}
	}
	return names, nil
}

// subnetConditions are the condition keys of a subnet.
func (a *Actions) subnetConditions(call *awsfront.Call, s *v1alpha1.Subnet) map[string][]string {
	return map[string][]string{
		"ec2:SubnetID": {s.Name}, "ec2:AvailabilityZone": {s.Spec.AvailabilityZone}, "ec2:Vpc": {a.ec2.ARN(call, "vpc/"+s.Spec.VPCID)},
	}
}
