// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"
	"strconv"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/ec2vpc"
)

type modifySubnetAttributeInput struct {
	SubnetID                                string
	MapPublicIPOnLaunch                     *ec2vpc.Boolean
	AssignIpv6AddressOnCreation             *ec2vpc.Boolean
	EnableDNS64                             *ec2vpc.Boolean
	EnableResourceNameDNSARecordOnLaunch    *ec2vpc.Boolean
	EnableResourceNameDNSAAAARecordOnLaunch *ec2vpc.Boolean
	MapCustomerOwnedIPOnLaunch              *ec2vpc.Boolean
	DisableLniAtDeviceIndex                 *ec2vpc.Boolean
	PrivateDNSHostnameTypeOnLaunch          string
}

// attributes are those that a request sets, by the names that conditions have.
func (in *modifySubnetAttributeInput) attributes() map[string]*ec2vpc.Boolean {
	all := ec2vpc.Given(map[string]*ec2vpc.Boolean{
		"MapPublicIpOnLaunch": in.MapPublicIPOnLaunch, "AssignIpv6AddressOnCreation": in.AssignIpv6AddressOnCreation, "EnableDns64": in.EnableDNS64,
		"EnableResourceNameDnsARecordOnLaunch": in.EnableResourceNameDNSARecordOnLaunch, "EnableResourceNameDnsAAAARecordOnLaunch": in.EnableResourceNameDNSAAAARecordOnLaunch,
		"MapCustomerOwnedIpOnLaunch": in.MapCustomerOwnedIPOnLaunch, "DisableLniAtDeviceIndex": in.DisableLniAtDeviceIndex,
	})
	if in.PrivateDNSHostnameTypeOnLaunch != "" {
		all["PrivateDnsHostnameTypeOnLaunch"] = nil
	}
	return all
}

func (a *Actions) modifySubnetAttribute() awsfront.Spec[modifySubnetAttributeInput, struct{}] {
	return awsfront.Spec[modifySubnetAttributeInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *modifySubnetAttributeInput) ([]awsfront.Target, error) {
			targets, err := a.ec2.About(ctx, call, ec2id.Subnet, in.SubnetID)
			for name, value := range in.attributes() {
				sets := in.PrivateDNSHostnameTypeOnLaunch
				if value != nil {
					sets = strconv.FormatBool(value.Value)
				}
				targets = ec2vpc.WithAttribute(targets, name, sets)
			}
			return targets, err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *modifySubnetAttributeInput) (*struct{}, error) {
			if err := ec2vpc.One(in.attributes()); err != nil {
				return nil, err
			}
			if err := ec2resource.Only("privateDnsHostnameTypeOnLaunch", in.PrivateDNSHostnameTypeOnLaunch, "ip-name"); err != nil {
				return nil, err
			}
			for name, value := range in.attributes() {
				if value != nil && value.Value && in.MapPublicIPOnLaunch == nil && in.DisableLniAtDeviceIndex == nil {
					return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Value (true) for parameter %s is invalid. Muster has no IPv6, no customer-owned addresses, and names of instances by their address only", name)
				}
			}
			if _, err := a.ec2.Subnet(ctx, in.SubnetID); err != nil {
				return nil, err
			}
			if in.MapPublicIPOnLaunch == nil {
				return nil, nil
			}
			s := &v1alpha1.Subnet{}
			return nil, a.ec2.Change(ctx, ec2id.Subnet, in.SubnetID, s, func() error {
				s.Spec.MapPublicIPOnLaunch = in.MapPublicIPOnLaunch.Value
				return nil
			})
		},
	}
}
