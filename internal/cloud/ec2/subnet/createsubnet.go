// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/ec2vpc"
)

type createSubnetInput struct {
	VpcID              string
	CidrBlock          string
	AvailabilityZone   string
	AvailabilityZoneID string
	Ipv6Native         bool
	TagSpecifications  []ec2resource.TagSpecification
	DryRun             bool
}

type subnetOutput struct{ Subnet *subnet }

func (a *Actions) createSubnet() awsfront.Spec[createSubnetInput, subnetOutput] {
	return awsfront.Spec[createSubnetInput, subnetOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createSubnetInput) ([]awsfront.Target, error) {
			zone, err := a.zoneOf(in)
			if err != nil {
				return nil, err
			}
			of, err := a.ec2.About(ctx, call, ec2id.VPC, in.VpcID)
			if err != nil {
				return nil, err
			}
			made, err := a.ec2.AboutNew(call, "subnet", in.TagSpecifications, map[string][]string{"ec2:AvailabilityZone": {zone}, "ec2:Vpc": {a.ec2.ARN(call, "vpc/"+in.VpcID)}})
			return append(made, of...), err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createSubnetInput) (*subnetOutput, error) {
			defer a.ec2.Locks.Hold(in.VpcID)()
			made, err := a.planSubnet(ctx, in)
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			if err := a.ec2.Management.Create(ctx, made); err != nil {
				return nil, ec2resource.Away(fmt.Errorf("making a subnet: %w", err))
			}
			shown, err := a.showSubnets(ctx, call, []v1alpha1.Subnet{*made})
			if err != nil {
				return nil, err
			}
			return &subnetOutput{&shown[0]}, nil
		},
	}
}

// planSubnet checks a request, and says what it makes.
func (a *Actions) planSubnet(ctx context.Context, in *createSubnetInput) (*v1alpha1.Subnet, error) {
	if in.Ipv6Native {
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Muster has no IPv6: leave ipv6Native out")
	}
	zone, err := a.zoneOf(in)
	if err != nil {
		return nil, err
	}
	if in.CidrBlock == "" {
		return nil, awsfault.Errorf(ec2resource.MissingParameter, "Either 'cidrBlock' or 'ipv4IpamPoolId' should be provided.")
	}
	cidr, err := ec2vpc.Block(in.CidrBlock, "InvalidSubnet.Range")
	if err != nil {
		return nil, err
	}
	tags, err := ec2resource.ReadTags(in.TagSpecifications, "subnet")
	if err != nil {
		return nil, err
	}
	of, err := a.ec2.VPC(ctx, in.VpcID)
	if err != nil {
		return nil, err
	}
	within, err := netip.ParsePrefix(of.Spec.CIDRBlock)
	if err != nil || within.Bits() > cidr.Bits() || !within.Contains(cidr.Addr()) {
		return nil, awsfault.Errorf("InvalidSubnet.Range", "The CIDR '%s' is invalid.", in.CidrBlock)
	}
	others, err := a.ec2.SubnetsOf(ctx, in.VpcID)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(others, func(s v1alpha1.Subnet) bool { return ec2resource.Overlaps(s, cidr) }) {
		return nil, awsfault.Errorf("InvalidSubnet.Conflict", "The CIDR '%s' conflicts with another subnet", in.CidrBlock)
	}
	return &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Name: ec2resource.NewID(ec2id.Subnet)},
		Spec:       v1alpha1.SubnetSpec{VPCID: in.VpcID, CIDRBlock: cidr.String(), AvailabilityZone: zone, Tags: awsresource.KeptTags(tags["subnet"])},
	}, nil
}

// zoneOf is the zone of a new subnet: by its name or its id, or the first one.
func (a *Actions) zoneOf(in *createSubnetInput) (string, error) {
	if in.AvailabilityZone != "" && in.AvailabilityZoneID != "" {
		return "", awsfault.Errorf(ec2resource.InvalidCombination, "You can specify either AvailabilityZone or AvailabilityZoneId, not both")
	}
	var there []string
	for _, zone := range a.ec2.Place.Zones {
		if in.AvailabilityZone == zone.Name || in.AvailabilityZoneID == zone.ID || in.AvailabilityZone == "" && in.AvailabilityZoneID == "" {
			return zone.Name, nil
		}
		there = append(there, zone.Name)
	}
	parameter := "availabilityZone"
	if in.AvailabilityZoneID != "" {
		parameter = "availabilityZoneId"
	}
	return "", awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.64s) for parameter %s is invalid. Subnets can currently only be created in the following availability zones: %s.",
		in.AvailabilityZone+in.AvailabilityZoneID, parameter, strings.Join(there, ", "))
}

type deleteSubnetInput struct {
	SubnetID string
	DryRun   bool
}

func (a *Actions) deleteSubnet() awsfront.Spec[deleteSubnetInput, struct{}] {
	return awsfront.Spec[deleteSubnetInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteSubnetInput) ([]awsfront.Target, error) {
			return a.ec2.About(ctx, call, ec2id.Subnet, in.SubnetID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteSubnetInput) (*struct{}, error) {
			found, err := a.ec2.Subnet(ctx, in.SubnetID)
			if err != nil {
				return nil, err
			}
			defer a.ec2.Locks.Hold(found.Spec.VPCID)()
			for _, users := range a.ec2.SubnetUsers {
				ids, err := users(ctx, found)
				if err != nil {
					return nil, err
				}
				if len(ids) > 0 {
					return nil, ec2resource.Depends("subnet", in.SubnetID, ids)
				}
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			if err := a.ec2.Management.Delete(ctx, found); err != nil && !apierrors.IsNotFound(err) {
				return nil, ec2resource.Away(fmt.Errorf("deleting %s: %w", in.SubnetID, err))
			}
			return nil, nil
		},
	}
}
