// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2id"
)

type modifySubnetAttributeInput struct {
	SubnetID                                string
	MapPublicIPOnLaunch                     *boolean
	AssignIpv6AddressOnCreation             *boolean
	EnableDNS64                             *boolean
	EnableResourceNameDNSARecordOnLaunch    *boolean
	EnableResourceNameDNSAAAARecordOnLaunch *boolean
	MapCustomerOwnedIPOnLaunch              *boolean
	DisableLniAtDeviceIndex                 *boolean
	PrivateDNSHostnameTypeOnLaunch          string
}

// attributes are those that a request sets, by the names that conditions have.
func (in *modifySubnetAttributeInput) attributes() map[string]*boolean {
	all := given(map[string]*boolean{
		"MapPublicIpOnLaunch": in.MapPublicIPOnLaunch, "AssignIpv6AddressOnCreation": in.AssignIpv6AddressOnCreation, "EnableDns64": in.EnableDNS64,
		"EnableResourceNameDnsARecordOnLaunch": in.EnableResourceNameDNSARecordOnLaunch, "EnableResourceNameDnsAAAARecordOnLaunch": in.EnableResourceNameDNSAAAARecordOnLaunch,
		"MapCustomerOwnedIpOnLaunch": in.MapCustomerOwnedIPOnLaunch, "DisableLniAtDeviceIndex": in.DisableLniAtDeviceIndex,
	})
	if in.PrivateDNSHostnameTypeOnLaunch != "" {
		all["PrivateDnsHostnameTypeOnLaunch"] = nil
	}
	return all
}

func (a *api) modifySubnetAttribute() awsfront.Spec[modifySubnetAttributeInput, struct{}] {
	return awsfront.Spec[modifySubnetAttributeInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *modifySubnetAttributeInput) ([]awsfront.Target, error) {
			targets, err := a.about(ctx, call, ec2id.Subnet, in.SubnetID)
			for name, value := range in.attributes() {
				sets := in.PrivateDNSHostnameTypeOnLaunch
				if value != nil {
					sets = text(value.Value)
				}
				targets = withAttribute(targets, name, sets)
			}
			return targets, err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *modifySubnetAttributeInput) (*struct{}, error) {
			if err := one(in.attributes()); err != nil {
				return nil, err
			}
			if err := only("privateDnsHostnameTypeOnLaunch", in.PrivateDNSHostnameTypeOnLaunch, "ip-name"); err != nil {
				return nil, err
			}
			for name, value := range in.attributes() {
				if value != nil && value.Value && in.MapPublicIPOnLaunch == nil && in.DisableLniAtDeviceIndex == nil {
					return nil, awsfault.Errorf(invalidParameter, "Value (true) for parameter %s is invalid. Muster has no IPv6, no customer-owned addresses, and names of instances by their address only", name)
				}
			}
			if _, err := a.subnet(ctx, in.SubnetID); err != nil {
				return nil, err
			}
			if in.MapPublicIPOnLaunch == nil {
				return nil, nil
			}
			s := &v1alpha1.Subnet{}
			return nil, a.change(ctx, ec2id.Subnet, in.SubnetID, s, func() error {
				s.Spec.MapPublicIPOnLaunch = in.MapPublicIPOnLaunch.Value
				return nil
			})
		},
	}
}
