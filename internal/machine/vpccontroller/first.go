// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/vpc"
)

// DefaultCIDR is the range of the default VPC, as of AWS's accounts; its subnets are a /20 in each zone.
const DefaultCIDR = "172.31.0.0/16"

const defaultSubnetBits = 20

// Default describes the default VPC of a new account, with a subnet in each zone. makeID makes an id with a prefix. The first zone has the
// smallest id of a subnet: it gets the first machine.
func Default(zones []string, egress egresspolicy.Mode, makeID func(prefix string) string) vpc.Description {
	cidr := netip.MustParsePrefix(DefaultCIDR)
	description := vpc.Description{ID: makeID("vpc-"), CIDR: cidr, Default: true, Egress: egresspolicy.Policy{Mode: egress}}
	ids := make([]string, 0, len(zones))
	for range zones {
		ids = append(ids, makeID("subnet-"))
	}
	slices.Sort(ids)
	for i, zone := range zones {
		block := cidr.Addr().As4()
		block[2] += byte(i << (24 - defaultSubnetBits))
		description.Subnets = append(description.Subnets, vpc.Subnet{
			ID: ids[i], Zone: zone, CIDR: netip.PrefixFrom(netip.AddrFrom4(block), defaultSubnetBits),
		})
	}
	return description
}

// First makes the objects of the default VPC as it is described, if there are none: it is described before the management plane is there. The
// VPC comes last: one that is there had its subnets, and if this was cut short the next call goes on.
func First(ctx context.Context, api client.Client, described []vpc.Description) error {
	for _, description := range described {
		if !description.Default {
			continue
		}
		object := &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: description.ID}}
		err := api.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("looking for the default VPC: %w", err)
		}
		for _, subnet := range description.Subnets {
			object := &v1alpha1.Subnet{
				ObjectMeta: metav1.ObjectMeta{Name: subnet.ID},
				Spec:       v1alpha1.SubnetSpec{VPCID: description.ID, CIDRBlock: subnet.CIDR.String(), AvailabilityZone: subnet.Zone, MapPublicIPOnLaunch: true}, // as AWS's default subnets: eksctl takes no others for public ones
			}
			if err := api.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("making a subnet of the default VPC: %w", err)
			}
		}
		object.Spec = v1alpha1.VPCSpec{CIDRBlock: description.CIDR.String(), IsDefault: true, Egress: v1alpha1.VPCEgress{Mode: v1alpha1.EgressMode(description.Egress.Mode)}}
		if err := api.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making the default VPC: %w", err)
		}
	}
	return nil
}
