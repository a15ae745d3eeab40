// SPDX-License-Identifier: Apache-2.0

package resource

import "slices"

// networkTypes are the types of EC2 that make a network.
func networkTypes() []Type {
	return slices.Concat(vpcTypes(), routeTypes(), routeTableTypes())
}

func vpcTypes() []Type {
	return []Type{
		{
			Name:       "AWS::EC2::VPC",
			Replaces:   words("CidrBlock Ipv4IpamPoolId Ipv4NetmaskLength InstanceTenancy"),
			Updates:    words("EnableDnsHostnames EnableDnsSupport Tags"),
			Attributes: words("CidrBlock CidrBlockAssociations DefaultNetworkAcl DefaultSecurityGroup Ipv6CidrBlocks VpcId"),
			ID:         words("VpcId"),
			Create:     actions("ec2", "CreateVpc ModifyVpcAttribute"),
			Read:       actions("ec2", "DescribeVpcs DescribeSecurityGroups DescribeNetworkAcls"),
			Update:     actions("ec2", "ModifyVpcAttribute CreateTags DeleteTags"),
			Delete:     actions("ec2", "DeleteVpc"),
			Once:       ByTag, TagType: "vpc",
			Apart: words("EnableDnsHostnames EnableDnsSupport"),
		},
		{
			Name:       "AWS::EC2::Subnet",
			Required:   words("VpcId"),
			Replaces:   words("AvailabilityZone AvailabilityZoneId CidrBlock Ipv4IpamPoolId Ipv4NetmaskLength Ipv6CidrBlock Ipv6IpamPoolId Ipv6Native Ipv6NetmaskLength OutpostArn VpcId"),
			Updates:    words("AssignIpv6AddressOnCreation EnableDns64 EnableLniAtDeviceIndex MapPublicIpOnLaunch PrivateDnsNameOptionsOnLaunch Tags"),
			Attributes: words("AvailabilityZone AvailabilityZoneId CidrBlock Ipv6CidrBlocks NetworkAclAssociationId OutpostArn SubnetId VpcId"),
			ID:         words("SubnetId"),
			Create:     actions("ec2", "CreateSubnet ModifySubnetAttribute"),
			Read:       actions("ec2", "DescribeSubnets DescribeNetworkAcls"),
			Update:     actions("ec2", "ModifySubnetAttribute CreateTags DeleteTags"),
			Delete:     actions("ec2", "DeleteSubnet"),
			Once:       ByTag, TagType: "subnet",
			Apart: words("AssignIpv6AddressOnCreation EnableDns64 EnableLniAtDeviceIndex MapPublicIpOnLaunch PrivateDnsNameOptionsOnLaunch"),
		},
		{
			Name:       "AWS::EC2::SecurityGroup",
			Named:      "GroupName",
			Required:   words("GroupDescription"),
			Replaces:   words("GroupDescription GroupName VpcId"),
			Updates:    words("SecurityGroupEgress SecurityGroupIngress Tags"),
			Attributes: words("GroupId Id VpcId"),
			ID:         words("GroupId"),
			Create:     actions("ec2", "CreateSecurityGroup AuthorizeSecurityGroupIngress RevokeSecurityGroupEgress AuthorizeSecurityGroupEgress"),
			Read:       actions("ec2", "DescribeSecurityGroups DescribeSecurityGroupRules"),
			Update:     actions("ec2", "AuthorizeSecurityGroupIngress RevokeSecurityGroupIngress AuthorizeSecurityGroupEgress RevokeSecurityGroupEgress CreateTags DeleteTags"),
			Delete:     actions("ec2", "DeleteSecurityGroup"),
			Once:       ByTag, TagType: "security-group",
			Names: map[string]string{"GroupDescription": "Description"},
			Apart: words("SecurityGroupEgress SecurityGroupIngress"),
		},
		rule("AWS::EC2::SecurityGroupIngress", "IpProtocol", "GroupName SourcePrefixListId SourceSecurityGroupId SourceSecurityGroupName SourceSecurityGroupOwnerId", "Ingress"),
		rule("AWS::EC2::SecurityGroupEgress", "GroupId IpProtocol", "DestinationPrefixListId DestinationSecurityGroupId", "Egress"),
	}
}

// rule is the type of a rule of a security group. Its action takes the rule whole, as a permission.
func rule(name, required, peers, direction string) Type {
	ends := words("CidrIp CidrIpv6 FromPort IpProtocol ToPort " + peers)
	return Type{
		Name:       name,
		Required:   words(required),
		Replaces:   append(words("GroupId"), ends...),
		Updates:    words("Description"),
		Attributes: words("Id"),
		ID:         words("Id"),
		Create:     actions("ec2", "AuthorizeSecurityGroup"+direction),
		Read:       actions("ec2", "DescribeSecurityGroupRules"),
		Update:     actions("ec2", "UpdateSecurityGroupRuleDescriptions"+direction),
		Delete:     actions("ec2", "RevokeSecurityGroup"+direction),
		Once:       ByValue, TagType: "security-group-rule",
		Apart:   append(words("Description"), ends...),
		Derived: map[string]func(map[string]any) (any, error){"IpPermissions": func(p map[string]any) (any, error) { return []any{Permission(p)}, nil }},
	}
}

func routeTypes() []Type {
	return []Type{
		{
			Name:       "AWS::EC2::InternetGateway",
			Updates:    words("Tags"),
			Attributes: words("InternetGatewayId"),
			ID:         words("InternetGatewayId"),
			Create:     actions("ec2", "CreateInternetGateway"),
			Read:       actions("ec2", "DescribeInternetGateways"),
			Update:     actions("ec2", "CreateTags DeleteTags"),
			Delete:     actions("ec2", "DeleteInternetGateway"),
			Once:       ByTag, TagType: "internet-gateway",
		},
		{
			Name:       "AWS::EC2::VPCGatewayAttachment",
			Required:   words("InternetGatewayId VpcId"), // the other choice is a VPN gateway, which is not here
			Replaces:   words("VpcId"),
			Updates:    words("InternetGatewayId VpnGatewayId"),
			Attributes: words("AttachmentType"),
			ID:         words("AttachmentType VpcId"),
			Create:     actions("ec2", "AttachInternetGateway"),
			Read:       actions("ec2", "DescribeInternetGateways"),
			Update:     actions("ec2", "DetachInternetGateway AttachInternetGateway"),
			Delete:     actions("ec2", "DetachInternetGateway"),
			Once:       ByValue,
			Apart:      words("VpnGatewayId"),
		},
		{
			Name:     "AWS::EC2::NatGateway",
			Required: words("SubnetId"),
			Replaces: words("AllocationId ConnectivityType PrivateIpAddress SubnetId"),
			// The secondary addresses change in place on AWS; the actions for it are not here, and the resource is refused then.
			Updates:    words("MaxDrainDurationSeconds SecondaryAllocationIds SecondaryPrivateIpAddressCount SecondaryPrivateIpAddresses Tags"),
			Attributes: words("NatGatewayId"),
			ID:         words("NatGatewayId"),
			Create:     actions("ec2", "CreateNatGateway"),
			Read:       actions("ec2", "DescribeNatGateways"),
			Update:     actions("ec2", "CreateTags DeleteTags"),
			Delete:     actions("ec2", "DeleteNatGateway"),
			Once:       ByToken, TagType: "natgateway",
			Apart: words("MaxDrainDurationSeconds"),
		},
		{
			Name:       "AWS::EC2::EIP",
			Replaces:   words("Address Domain IpamPoolId NetworkBorderGroup TransferAddress"),
			Updates:    words("InstanceId PublicIpv4Pool Tags"),
			Attributes: words("AllocationId PublicIp"),
			ID:         words("PublicIp"),
			Create:     actions("ec2", "AllocateAddress AssociateAddress"),
			Read:       actions("ec2", "DescribeAddresses"),
			Update:     actions("ec2", "AssociateAddress DisassociateAddress CreateTags DeleteTags"),
			Delete:     actions("ec2", "DisassociateAddress ReleaseAddress"),
			Once:       ByTag, TagType: "elastic-ip",
			Apart:   words("InstanceId TransferAddress"),
			Derived: map[string]func(map[string]any) (any, error){"Domain": func(map[string]any) (any, error) { return "vpc", nil }},
		},
	}
}

// routeTableTypes are the types about route tables.
func routeTableTypes() []Type {
	return []Type{
		{
			Name:       "AWS::EC2::RouteTable",
			Required:   words("VpcId"),
			Replaces:   words("VpcId"),
			Updates:    words("Tags"),
			Attributes: words("RouteTableId"),
			ID:         words("RouteTableId"),
			Create:     actions("ec2", "CreateRouteTable"),
			Read:       actions("ec2", "DescribeRouteTables"),
			Update:     actions("ec2", "CreateTags DeleteTags"),
			Delete:     actions("ec2", "DeleteRouteTable"),
			Once:       ByToken, TagType: "route-table",
		},
		{
			Name:     "AWS::EC2::Route",
			Required: words("RouteTableId"),
			Replaces: words("DestinationCidrBlock DestinationIpv6CidrBlock DestinationPrefixListId RouteTableId"),
			Updates: words("CarrierGatewayId CoreNetworkArn EgressOnlyInternetGatewayId GatewayId InstanceId LocalGatewayId NatGatewayId NetworkInterfaceId TransitGatewayId VpcEndpointId " +
				"VpcPeeringConnectionId"),
			Attributes: words("CidrBlock"),
			ID:         words("RouteTableId CidrBlock"),
			Create:     actions("ec2", "CreateRoute"),
			Read:       actions("ec2", "DescribeRouteTables"),
			Update:     actions("ec2", "ReplaceRoute"),
			Delete:     actions("ec2", "DeleteRoute"),
			Once:       ByValue,
		},
		{
			Name:       "AWS::EC2::SubnetRouteTableAssociation",
			Required:   words("RouteTableId SubnetId"),
			Replaces:   words("SubnetId"),
			Updates:    words("RouteTableId"), // in place, unlike AWS: a subnet has one association at most, so that two of them do not stand side by side
			Attributes: words("Id"),
			ID:         words("Id"),
			Create:     actions("ec2", "AssociateRouteTable"),
			Read:       actions("ec2", "DescribeRouteTables"),
			Update:     actions("ec2", "ReplaceRouteTableAssociation AssociateRouteTable"),
			Delete:     actions("ec2", "DisassociateRouteTable"),
			Once:       ByValue,
		},
	}
}
