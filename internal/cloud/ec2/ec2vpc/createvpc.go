// SPDX-License-Identifier: Apache-2.0

package ec2vpc

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// The default VPC is as that of AWS's accounts.
const (
	defaultCIDR       = "172.31.0.0/16"
	defaultSubnetBits = 20
)

type createVpcInput struct {
	CidrBlock                   string
	InstanceTenancy             string
	AmazonProvidedIpv6CidrBlock bool
	TagSpecifications           []ec2resource.TagSpecification
	DryRun                      bool
}

type vpcOutput struct{ Vpc *vpc }

func (a *Actions) createVpc() awsfront.Spec[createVpcInput, vpcOutput] {
	return awsfront.Spec[createVpcInput, vpcOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *createVpcInput) ([]awsfront.Target, error) {
			return a.ec2.AboutNew(call, "vpc", in.TagSpecifications, map[string][]string{"ec2:Tenancy": {"default"}})
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createVpcInput) (*vpcOutput, error) {
			if in.AmazonProvidedIpv6CidrBlock {
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Muster has no IPv6: leave amazonProvidedIpv6CidrBlock out")
			}
			if err := ec2resource.Only("instanceTenancy", in.InstanceTenancy, "default"); err != nil {
				return nil, err
			}
			if in.CidrBlock == "" {
				return nil, awsfault.Errorf(ec2resource.MissingParameter, "Either 'cidrBlock' or 'ipv4IpamPoolId' should be provided.")
			}
			cidr, err := Block(in.CidrBlock, "InvalidVpc.Range")
			if err != nil {
				return nil, err
			}
			if err := a.apartFromHost(cidr); err != nil {
				return nil, err
			}
			tags, err := ec2resource.ReadTags(in.TagSpecifications, "vpc")
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made := &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: ec2resource.NewID(ec2id.VPC)}, Spec: v1alpha1.VPCSpec{CIDRBlock: cidr.String(), Tags: awsresource.KeptTags(tags["vpc"])}}
			if err := a.ec2.Management.Create(ctx, made); err != nil {
				return nil, ec2resource.Away(fmt.Errorf("making a VPC: %w", err))
			}
			shown := showVPC(call, made)
			return &vpcOutput{&shown}, nil
		},
	}
}

// apartFromHost refuses the range of a new VPC that has addresses of the host's load balancers: machines could not tell
// them apart.
func (a *Actions) apartFromHost(cidr netip.Prefix) error {
	ranges, err := a.ec2.HostRanges()
	if err != nil {
		return ec2resource.Away(fmt.Errorf("reading where the host has load balancers: %w", err))
	}
	if at := slices.IndexFunc(ranges, cidr.Overlaps); at >= 0 {
		return awsfault.Errorf("InvalidVpc.Range", "The CIDR '%s' is invalid: it overlaps %s, where the host has load balancers (muster up --load-balancer-range).", cidr, ranges[at])
	}
	return nil
}

// Block reads a range of addresses. Bits behind its length are dropped, as EC2 does; code is that of a range that may
// not be.
func Block(text, code string) (netip.Prefix, error) {
	cidr, err := netip.ParsePrefix(text)
	if err != nil || !cidr.Addr().Is4() {
		return cidr, awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.50s) for parameter cidrBlock is invalid. This is not a valid CIDR block.", text)
	}
	cidr = cidr.Masked()
	if cidr.Bits() < 16 || cidr.Bits() > 28 || !cidr.Addr().IsGlobalUnicast() {
		return cidr, awsfault.Errorf(code, "The CIDR '%s' is invalid.", text)
	}
	return cidr, nil
}

type createDefaultVpcInput struct{ DryRun bool }

func (a *Actions) createDefaultVpc() awsfront.Spec[createDefaultVpcInput, vpcOutput] {
	return awsfront.Spec[createDefaultVpcInput, vpcOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *createDefaultVpcInput) (*vpcOutput, error) {
			defer a.ec2.Locks.Hold("default VPC")()
			found, err := a.DefaultVPC(ctx)
			if err != nil {
				return nil, err
			}
			if found != nil && found.DeletionTimestamp.IsZero() {
				whole, err := a.hasDefaultSubnets(ctx, found.Name)
				if err != nil {
					return nil, err
				}
				if whole || found.Annotations[annotationDefault] == "" {
					return nil, awsfault.Errorf("DefaultVpcAlreadyExists", "A Default VPC already exists for this account in this region.")
				}
			}
			if found == nil {
				if err := a.apartFromHost(netip.MustParsePrefix(defaultCIDR)); err != nil {
					return nil, err
				}
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			if found == nil {
				found = &v1alpha1.VPC{
					ObjectMeta: metav1.ObjectMeta{Name: ec2resource.NewID(ec2id.VPC), Annotations: map[string]string{annotationDefault: "CreateDefaultVpc"}},
					Spec: v1alpha1.VPCSpec{
						CIDRBlock: defaultCIDR, IsDefault: true, EnableDNSHostnames: true,
						Egress: v1alpha1.VPCEgress{Mode: v1alpha1.EgressNAT}, // AWS's default VPC has an internet gateway
					},
				}
				if err := a.ec2.Management.Create(ctx, found); err != nil {
					return nil, ec2resource.Away(fmt.Errorf("making the default VPC: %w", err))
				}
			}
			for i := range a.ec2.Place.Zones {
				if err := a.createDefaultSubnet(ctx, found.Name, i); err != nil {
					return nil, err
				}
			}
			shown := showVPC(call, found)
			return &vpcOutput{&shown}, nil
		},
	}
}

// annotationDefault is on a default VPC that CreateDefaultVpc made. If it was cut short between VPC and subnets, the
// next one goes on.
const annotationDefault = "muster.dev/made-by"

// DefaultVPC is the account's default VPC, nil if there is none.
func (a *Actions) DefaultVPC(ctx context.Context) (*v1alpha1.VPC, error) {
	var all v1alpha1.VPCList
	if err := a.ec2.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if v := &all.Items[i]; v.Spec.IsDefault && !ec2resource.Leaving(v, v.Status.Conditions) {
			return v, nil
		}
	}
	return nil, nil
}

func (a *Actions) hasDefaultSubnets(ctx context.Context, vpc string) (bool, error) {
	subnets, err := a.ec2.SubnetsOf(ctx, vpc)
	if err != nil {
		return false, err
	}
	for i := range a.ec2.Place.Zones {
		if !slices.ContainsFunc(subnets, func(s v1alpha1.Subnet) bool { return s.Spec.CIDRBlock == DefaultSubnet(i).String() }) {
			return false, nil
		}
	}
	return true, nil
}

// createDefaultSubnet makes the default subnet of a zone, if nothing is in its place.
func (a *Actions) createDefaultSubnet(ctx context.Context, vpc string, zone int) error {
	subnets, err := a.ec2.SubnetsOf(ctx, vpc)
	if err != nil {
		return err
	}
	cidr := DefaultSubnet(zone)
	if slices.ContainsFunc(subnets, func(s v1alpha1.Subnet) bool { return ec2resource.Overlaps(s, cidr) }) {
		return nil
	}
	err = a.ec2.Management.Create(ctx, &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Name: ec2resource.NewID(ec2id.Subnet)},
		Spec:       v1alpha1.SubnetSpec{VPCID: vpc, CIDRBlock: cidr.String(), AvailabilityZone: a.ec2.Place.Zones[zone].Name, MapPublicIPOnLaunch: true},
	})
	if err != nil {
		return ec2resource.Away(fmt.Errorf("making a subnet of the default VPC: %w", err))
	}
	return nil
}

// DefaultSubnet is the range of the default subnet of a zone.
func DefaultSubnet(zone int) netip.Prefix {
	address := netip.MustParsePrefix(defaultCIDR).Addr().As4()
	address[2] += byte(zone << (24 - defaultSubnetBits)) //nolint:gosec // G115: there are three zones
	return netip.PrefixFrom(netip.AddrFrom4(address), defaultSubnetBits)
}
