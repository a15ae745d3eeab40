// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"context"
	"encoding/binary"
	"net/netip"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ec2id"
)

// ReservedOf are the first and the last address of a subnet that anybody may have.
func ReservedOf(cidr netip.Prefix) (first, last netip.Addr) {
	first = cidr.Addr()
	for range NotForMachines - 1 {
		first = first.Next()
	}
	bytes := cidr.Addr().As4()
	binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(bytes[:])+uint32(1)<<(32-cidr.Bits())-2)
	return first, netip.AddrFrom4(bytes)
}

// NotForMachines are the addresses of a subnet that nobody gets: the first four and the last.
const NotForMachines = 5

// SubnetsOf are the subnets of a VPC, or all, that have not been deleted.
func (a *EC2) SubnetsOf(ctx context.Context, vpc string) ([]v1alpha1.Subnet, error) {
	var all v1alpha1.SubnetList
	if err := a.List(ctx, &all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all.Items, func(s v1alpha1.Subnet) bool {
		return vpc != "" && s.Spec.VPCID != vpc || Leaving(&s, s.Status.Conditions)
	}), nil
}

// Subnet reads a subnet that has not been deleted.
func (a *EC2) Subnet(ctx context.Context, id string) (*v1alpha1.Subnet, error) {
	s := &v1alpha1.Subnet{}
	if err := a.Get(ctx, ec2id.Subnet, id, s); err != nil {
		return nil, err
	}
	if Leaving(s, s.Status.Conditions) {
		return nil, ec2id.Subnet.NotFound(id)
	}
	return s, nil
}

// Overlaps reports whether a subnet has an address of a range.
func Overlaps(s v1alpha1.Subnet, cidr netip.Prefix) bool {
	other, err := netip.ParsePrefix(s.Spec.CIDRBlock)
	return err == nil && other.Overlaps(cidr)
}

// SubnetNames are the ids of subnets, in their order.
func SubnetNames(subnets []v1alpha1.Subnet) []string {
	all := make([]string, 0, len(subnets))
	for i := range subnets {
		all = append(all, subnets[i].Name)
	}
	return all
}
