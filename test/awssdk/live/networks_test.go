// SPDX-License-Identifier: Apache-2.0

package live

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// tagged are the tags of what a test makes.
func tagged(of types.ResourceType) []types.TagSpecification {
	return []types.TagSpecification{{ResourceType: of, Tags: []types.Tag{{Key: aws.String("live"), Value: aws.String("networks")}}}}
}

// note is what an earlier test made.
func (w *world) note(name string) *string { return aws.String(w.notes[name]) }

// networkActions make a VPC with all that belongs to one, look at it, and take it away.
func networkActions() []action {
	actions := accountActions()
	for _, more := range [][]action{vpcActions(), subnetActions(), gatewayActions(), routeActions(), aclActions(), tagActions(), networkEnds()} {
		actions = append(actions, more...)
	}
	return actions
}

func accountActions() []action {
	return []action{
		{"DescribeRegions", func(w *world) {
			w.has(need(w.ec2.DescribeRegions(w.ctx(), &ec2.DescribeRegionsInput{})), "Regions[].RegionName", "Regions[].Endpoint", "Regions[].OptInStatus")
		}},
		{"DescribeAccountAttributes", func(w *world) {
			w.has(need(w.ec2.DescribeAccountAttributes(w.ctx(), &ec2.DescribeAccountAttributesInput{})), "AccountAttributes[].AttributeName", "AccountAttributes[].AttributeValues[].AttributeValue")
		}},
		{"DescribeDhcpOptions", func(w *world) {
			out := need(w.ec2.DescribeDhcpOptions(w.ctx(), &ec2.DescribeDhcpOptionsInput{}))
			w.has(out, "DhcpOptions[].DhcpOptionsId", "DhcpOptions[].DhcpConfigurations[].Values[].Value", "DhcpOptions[].OwnerId")
		}},
		{"DescribeVpcEndpoints", func(w *world) { need(w.ec2.DescribeVpcEndpoints(w.ctx(), &ec2.DescribeVpcEndpointsInput{})) }},
		{"DescribePrefixLists", func(w *world) { need(w.ec2.DescribePrefixLists(w.ctx(), &ec2.DescribePrefixListsInput{})) }},
		{"DescribeManagedPrefixLists", func(w *world) {
			need(w.ec2.DescribeManagedPrefixLists(w.ctx(), &ec2.DescribeManagedPrefixListsInput{}))
		}},
		{"DescribePlacementGroups", func(w *world) { need(w.ec2.DescribePlacementGroups(w.ctx(), &ec2.DescribePlacementGroupsInput{})) }},
		{"DescribeCapacityReservations", func(w *world) {
			need(w.ec2.DescribeCapacityReservations(w.ctx(), &ec2.DescribeCapacityReservationsInput{}))
		}},
		{"DescribeSpotPriceHistory", func(w *world) { need(w.ec2.DescribeSpotPriceHistory(w.ctx(), &ec2.DescribeSpotPriceHistoryInput{})) }},
		{"CreateDefaultVpc", func(w *world) {
			_, err := w.ec2.CreateDefaultVpc(w.ctx(), &ec2.CreateDefaultVpcInput{})
			w.refused("DefaultVpcAlreadyExists", err)
		}},
	}
}

func vpcActions() []action {
	return []action{
		{"CreateVpc", func(w *world) {
			_, err := w.ec2.CreateVpc(w.ctx(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/8")})
			w.refused("InvalidVpc.Range", err)
			out := need(w.ec2.CreateVpc(w.ctx(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.77.0.0/16"), TagSpecifications: tagged(types.ResourceTypeVpc)}))
			w.has(out, "Vpc.VpcId", "Vpc.CidrBlock", "Vpc.DhcpOptionsId", "Vpc.OwnerId", "Vpc.CidrBlockAssociationSet[].AssociationId", "Vpc.Tags[].Key")
			w.notes["network"] = *out.Vpc.VpcId
			must(ec2.NewVpcAvailableWaiter(w.ec2).Wait(w.ctx(), &ec2.DescribeVpcsInput{VpcIds: []string{*out.Vpc.VpcId}}, time.Minute))
		}},
		{"ModifyVpcAttribute", func(w *world) {
			need(w.ec2.ModifyVpcAttribute(w.ctx(), &ec2.ModifyVpcAttributeInput{VpcId: w.note("network"), EnableDnsHostnames: &types.AttributeBooleanValue{Value: aws.Bool(true)}}))
		}},
		{"DescribeVpcAttribute", func(w *world) {
			out := need(w.ec2.DescribeVpcAttribute(w.ctx(), &ec2.DescribeVpcAttributeInput{VpcId: w.note("network"), Attribute: types.VpcAttributeNameEnableDnsHostnames}))
			if !*out.EnableDnsHostnames.Value {
				w.Error("enableDnsHostnames was not kept")
			}
		}},
	}
}

func subnetActions() []action {
	return []action{
		{"CreateSubnet", func(w *world) {
			in := &ec2.CreateSubnetInput{VpcId: w.note("network"), CidrBlock: aws.String("10.77.1.0/24"), TagSpecifications: tagged(types.ResourceTypeSubnet)}
			out := need(w.ec2.CreateSubnet(w.ctx(), in))
			w.has(out, "Subnet.SubnetId", "Subnet.SubnetArn", "Subnet.AvailabilityZone", "Subnet.AvailabilityZoneId", "Subnet.PrivateDnsNameOptionsOnLaunch.HostnameType")
			w.notes["subnet"] = *out.Subnet.SubnetId
			_, err := w.ec2.CreateSubnet(w.ctx(), in)
			w.refused("InvalidSubnet.Conflict", err)
			must(ec2.NewSubnetAvailableWaiter(w.ec2).Wait(w.ctx(), &ec2.DescribeSubnetsInput{SubnetIds: []string{*out.Subnet.SubnetId}}, time.Minute))
		}},
		{"ModifySubnetAttribute", func(w *world) {
			need(w.ec2.ModifySubnetAttribute(w.ctx(), &ec2.ModifySubnetAttributeInput{SubnetId: w.note("subnet"), MapPublicIpOnLaunch: &types.AttributeBooleanValue{Value: aws.Bool(true)}}))
		}},
		{"DescribeSubnets", func(w *world) {
			out := need(w.ec2.DescribeSubnets(w.ctx(), &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{w.notes["network"]}}}}))
			if len(out.Subnets) != 1 || !*out.Subnets[0].MapPublicIpOnLaunch || *out.Subnets[0].AvailableIpAddressCount != 251 {
				w.Errorf("%+v", out.Subnets)
			}
		}},
	}
}

func gatewayActions() []action {
	return []action{
		{"CreateInternetGateway", func(w *world) {
			out := need(w.ec2.CreateInternetGateway(w.ctx(), &ec2.CreateInternetGatewayInput{TagSpecifications: tagged(types.ResourceTypeInternetGateway)}))
			w.notes["gateway"] = *out.InternetGateway.InternetGatewayId
		}},
		{"AttachInternetGateway", func(w *world) {
			in := &ec2.AttachInternetGatewayInput{InternetGatewayId: w.note("gateway"), VpcId: w.note("network")}
			need(w.ec2.AttachInternetGateway(w.ctx(), in))
			_, err := w.ec2.AttachInternetGateway(w.ctx(), in)
			w.refused("Resource.AlreadyAssociated", err)
		}},
		{"DescribeInternetGateways", func(w *world) {
			out := need(w.ec2.DescribeInternetGateways(w.ctx(), &ec2.DescribeInternetGatewaysInput{InternetGatewayIds: []string{w.notes["gateway"]}}))
			w.has(out, "InternetGateways[].OwnerId", "InternetGateways[].Attachments[].VpcId", "InternetGateways[].Attachments[].State", "InternetGateways[].Tags[].Key")
		}},
		{"AllocateAddress", func(w *world) {
			out := need(w.ec2.AllocateAddress(w.ctx(), &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc, TagSpecifications: tagged(types.ResourceTypeElasticIp)}))
			w.has(out, "AllocationId", "PublicIp")
			w.notes["address"] = *out.AllocationId
		}},
		{"DescribeAddressesAttribute", func(w *world) {
			need(w.ec2.DescribeAddressesAttribute(w.ctx(), &ec2.DescribeAddressesAttributeInput{AllocationIds: []string{w.notes["address"]}, Attribute: types.AddressAttributeNameDomainName}))
		}},
		{"AssociateAddress", func(w *world) {
			_, err := w.ec2.AssociateAddress(w.ctx(), &ec2.AssociateAddressInput{AllocationId: w.note("address"), InstanceId: aws.String("i-0123456789abcdef0")})
			w.refused("InvalidInstanceID.NotFound", err)
		}},
		{"CreateNatGateway", func(w *world) {
			in := &ec2.CreateNatGatewayInput{SubnetId: w.note("subnet"), AllocationId: w.note("address"), ClientToken: aws.String("live"), TagSpecifications: tagged(types.ResourceTypeNatgateway)}
			out := need(w.ec2.CreateNatGateway(w.ctx(), in))
			w.notes["nat"] = *out.NatGateway.NatGatewayId
			if again := need(w.ec2.CreateNatGateway(w.ctx(), in)); *again.NatGateway.NatGatewayId != w.notes["nat"] {
				w.Errorf("sent twice it made two: %v", again.NatGateway)
			}
			must(ec2.NewNatGatewayAvailableWaiter(w.ec2).Wait(w.ctx(), &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{w.notes["nat"]}}, time.Minute))
		}},
		{"DescribeNatGateways", func(w *world) {
			out := need(w.ec2.DescribeNatGateways(w.ctx(), &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{w.notes["nat"]}}))
			w.has(out, "NatGateways[].NatGatewayAddresses[].PrivateIp", "NatGateways[].NatGatewayAddresses[].PublicIp", "NatGateways[].NatGatewayAddresses[].AssociationId", "NatGateways[].CreateTime")
		}},
		{"DescribeAddresses", func(w *world) {
			out := need(w.ec2.DescribeAddresses(w.ctx(), &ec2.DescribeAddressesInput{AllocationIds: []string{w.notes["address"]}}))
			w.has(out, "Addresses[].AssociationId", "Addresses[].NetworkInterfaceId", "Addresses[].PrivateIpAddress")
			w.notes["eipassoc"] = *out.Addresses[0].AssociationId
		}},
		{"DisassociateAddress", func(w *world) {
			_, err := w.ec2.DisassociateAddress(w.ctx(), &ec2.DisassociateAddressInput{AssociationId: w.note("eipassoc")})
			w.refused("AuthFailure", err)
		}},
	}
}

func routeActions() []action {
	return []action{
		{"CreateRouteTable", func(w *world) {
			out := need(w.ec2.CreateRouteTable(w.ctx(), &ec2.CreateRouteTableInput{VpcId: w.note("network"), TagSpecifications: tagged(types.ResourceTypeRouteTable)}))
			w.has(out, "RouteTable.RouteTableId", "RouteTable.Routes[].GatewayId")
			w.notes["table"] = *out.RouteTable.RouteTableId
		}},
		{"CreateRoute", func(w *world) {
			out := need(w.ec2.CreateRoute(w.ctx(), &ec2.CreateRouteInput{RouteTableId: w.note("table"), DestinationCidrBlock: aws.String("0.0.0.0/0"), GatewayId: w.note("gateway")}))
			if !*out.Return {
				w.Error("it answers false")
			}
		}},
		{"ReplaceRoute", func(w *world) {
			need(w.ec2.ReplaceRoute(w.ctx(), &ec2.ReplaceRouteInput{RouteTableId: w.note("table"), DestinationCidrBlock: aws.String("0.0.0.0/0"), NatGatewayId: w.note("nat")}))
		}},
		{"AssociateRouteTable", func(w *world) {
			out := need(w.ec2.AssociateRouteTable(w.ctx(), &ec2.AssociateRouteTableInput{RouteTableId: w.note("table"), SubnetId: w.note("subnet")}))
			w.has(out, "AssociationId", "AssociationState.State")
			w.notes["rtbassoc"] = *out.AssociationId
		}},
		{"DescribeRouteTables", func(w *world) {
			out := need(w.ec2.DescribeRouteTables(w.ctx(), &ec2.DescribeRouteTablesInput{RouteTableIds: []string{w.notes["table"]}}))
			w.has(out, "RouteTables[].Routes[].State", "RouteTables[].Routes[].Origin", "RouteTables[].Associations[].SubnetId", "RouteTables[].Tags[].Key")
		}},
		{"ReplaceRouteTableAssociation", func(w *world) {
			out := need(w.ec2.ReplaceRouteTableAssociation(w.ctx(), &ec2.ReplaceRouteTableAssociationInput{RouteTableId: w.note("table"), AssociationId: w.note("rtbassoc")}))
			w.notes["rtbassoc"] = *out.NewAssociationId
		}},
		{"DisassociateRouteTable", func(w *world) {
			need(w.ec2.DisassociateRouteTable(w.ctx(), &ec2.DisassociateRouteTableInput{AssociationId: w.note("rtbassoc")}))
		}},
		{"DeleteRoute", func(w *world) {
			need(w.ec2.DeleteRoute(w.ctx(), &ec2.DeleteRouteInput{RouteTableId: w.note("table"), DestinationCidrBlock: aws.String("0.0.0.0/0")}))
		}},
		{"DeleteRouteTable", func(w *world) {
			need(w.ec2.DeleteRouteTable(w.ctx(), &ec2.DeleteRouteTableInput{RouteTableId: w.note("table")}))
			_, err := w.ec2.DescribeRouteTables(w.ctx(), &ec2.DescribeRouteTablesInput{RouteTableIds: []string{w.notes["table"]}})
			w.refused("InvalidRouteTableID.NotFound", err)
		}},
	}
}

func aclActions() []action {
	return []action{
		{"CreateNetworkAcl", func(w *world) {
			out := need(w.ec2.CreateNetworkAcl(w.ctx(), &ec2.CreateNetworkAclInput{VpcId: w.note("network"), TagSpecifications: tagged(types.ResourceTypeNetworkAcl)}))
			w.has(out, "NetworkAcl.NetworkAclId", "NetworkAcl.Entries[].RuleAction")
			w.notes["acl"] = *out.NetworkAcl.NetworkAclId
		}},
		{"CreateNetworkAclEntry", func(w *world) {
			need(w.ec2.CreateNetworkAclEntry(w.ctx(), &ec2.CreateNetworkAclEntryInput{
				NetworkAclId: w.note("acl"), RuleNumber: aws.Int32(10), Egress: aws.Bool(true), Protocol: aws.String("-1"), RuleAction: types.RuleActionAllow, CidrBlock: aws.String("0.0.0.0/0"),
			}))
		}},
		{"ReplaceNetworkAclEntry", func(w *world) {
			need(w.ec2.ReplaceNetworkAclEntry(w.ctx(), &ec2.ReplaceNetworkAclEntryInput{
				NetworkAclId: w.note("acl"), RuleNumber: aws.Int32(10), Egress: aws.Bool(true), Protocol: aws.String("6"), RuleAction: types.RuleActionDeny, CidrBlock: aws.String("10.0.0.0/8"),
				PortRange: &types.PortRange{From: aws.Int32(80), To: aws.Int32(80)},
			}))
		}},
		{"DeleteNetworkAclEntry", func(w *world) {
			need(w.ec2.DeleteNetworkAclEntry(w.ctx(), &ec2.DeleteNetworkAclEntryInput{NetworkAclId: w.note("acl"), RuleNumber: aws.Int32(10), Egress: aws.Bool(true)}))
		}},
		{"DescribeNetworkAcls", func(w *world) {
			out := need(w.ec2.DescribeNetworkAcls(w.ctx(), &ec2.DescribeNetworkAclsInput{Filters: []types.Filter{{Name: aws.String("association.subnet-id"), Values: []string{w.notes["subnet"]}}}}))
			w.has(out, "NetworkAcls[].NetworkAclId", "NetworkAcls[].Entries[].Protocol", "NetworkAcls[].Associations[].NetworkAclAssociationId")
			w.notes["defaultacl"], w.notes["aclassoc"] = *out.NetworkAcls[0].NetworkAclId, *out.NetworkAcls[0].Associations[0].NetworkAclAssociationId
		}},
		{"ReplaceNetworkAclAssociation", func(w *world) {
			out := need(w.ec2.ReplaceNetworkAclAssociation(w.ctx(), &ec2.ReplaceNetworkAclAssociationInput{NetworkAclId: w.note("acl"), AssociationId: w.note("aclassoc")}))
			need(w.ec2.ReplaceNetworkAclAssociation(w.ctx(), &ec2.ReplaceNetworkAclAssociationInput{NetworkAclId: w.note("defaultacl"), AssociationId: out.NewAssociationId}))
		}},
		{"DeleteNetworkAcl", func(w *world) {
			need(w.ec2.DeleteNetworkAcl(w.ctx(), &ec2.DeleteNetworkAclInput{NetworkAclId: w.note("acl")}))
		}},
	}
}

func tagActions() []action {
	return []action{
		{"CreateTags", func(w *world) {
			need(w.ec2.CreateTags(w.ctx(), &ec2.CreateTagsInput{
				Resources: []string{w.notes["network"], w.notes["subnet"], w.notes["gateway"], w.notes["nat"], w.notes["address"], w.notes["defaultacl"]},
				Tags:      []types.Tag{{Key: aws.String("more"), Value: aws.String("x")}},
			}))
		}},
		{"DescribeTags", func(w *world) {
			out := need(w.ec2.DescribeTags(w.ctx(), &ec2.DescribeTagsInput{Filters: []types.Filter{{Name: aws.String("key"), Values: []string{"more"}}}}))
			if w.has(out, "Tags[].ResourceId", "Tags[].ResourceType", "Tags[].Value"); len(out.Tags) != 6 {
				w.Errorf("of six tags %+v", out.Tags)
			}
		}},
		{"DeleteTags", func(w *world) {
			need(w.ec2.DeleteTags(w.ctx(), &ec2.DeleteTagsInput{Resources: []string{w.notes["network"]}, Tags: []types.Tag{{Key: aws.String("more")}}}))
		}},
	}
}

// networkEnds take away what the others made, in the order in which it can go.
func networkEnds() []action {
	return []action{
		{"DeleteNatGateway", func(w *world) {
			_, err := w.ec2.DeleteSubnet(w.ctx(), &ec2.DeleteSubnetInput{SubnetId: w.note("subnet")})
			w.refused("DependencyViolation", err)
			need(w.ec2.DeleteNatGateway(w.ctx(), &ec2.DeleteNatGatewayInput{NatGatewayId: w.note("nat")}))
			must(ec2.NewNatGatewayDeletedWaiter(w.ec2).Wait(w.ctx(), &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{w.notes["nat"]}}, time.Minute))
		}},
		{"ReleaseAddress", func(w *world) {
			need(w.ec2.ReleaseAddress(w.ctx(), &ec2.ReleaseAddressInput{AllocationId: w.note("address")}))
		}},
		{"DeleteSubnet", func(w *world) {
			need(w.ec2.DeleteSubnet(w.ctx(), &ec2.DeleteSubnetInput{SubnetId: w.note("subnet")}))
			_, err := w.ec2.DescribeSubnets(w.ctx(), &ec2.DescribeSubnetsInput{SubnetIds: []string{w.notes["subnet"]}})
			w.refused("InvalidSubnetID.NotFound", err)
		}},
		{"DetachInternetGateway", func(w *world) {
			_, err := w.ec2.DeleteVpc(w.ctx(), &ec2.DeleteVpcInput{VpcId: w.note("network")})
			w.refused("DependencyViolation", err)
			need(w.ec2.DetachInternetGateway(w.ctx(), &ec2.DetachInternetGatewayInput{InternetGatewayId: w.note("gateway"), VpcId: w.note("network")}))
		}},
		{"DeleteInternetGateway", func(w *world) {
			need(w.ec2.DeleteInternetGateway(w.ctx(), &ec2.DeleteInternetGatewayInput{InternetGatewayId: w.note("gateway")}))
		}},
		{"DeleteVpc", func(w *world) {
			need(w.ec2.DeleteVpc(w.ctx(), &ec2.DeleteVpcInput{VpcId: w.note("network")}))
			_, err := w.ec2.DescribeVpcs(w.ctx(), &ec2.DescribeVpcsInput{VpcIds: []string{w.notes["network"]}})
			w.refused("InvalidVpcID.NotFound", err)
		}},
	}
}
