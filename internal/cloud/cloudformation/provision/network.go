// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// described says how a type of EC2 is described.
type described struct {
	// action and list are those of the description, such as DescribeVpcs and Vpcs.
	action, list string
	// ids is the member that takes ids, and id the one that has the id of an item.
	ids, id string
	// made is the path of the id in the output of the creation.
	made string
}

var (
	vpcs             = described{"DescribeVpcs", "Vpcs", "VpcIds", "VpcId", "Vpc.VpcId"}
	subnets          = described{"DescribeSubnets", "Subnets", "SubnetIds", "SubnetId", "Subnet.SubnetId"}
	internetGateways = described{"DescribeInternetGateways", "InternetGateways", "InternetGatewayIds", "InternetGatewayId", "InternetGateway.InternetGatewayId"}
	natGateways      = described{"DescribeNatGateways", "NatGateways", "NatGatewayIds", "NatGatewayId", "NatGateway.NatGatewayId"}
	addresses        = described{"DescribeAddresses", "Addresses", "AllocationIds", "AllocationId", "AllocationId"}
	routeTables      = described{"DescribeRouteTables", "RouteTables", "RouteTableIds", "RouteTableId", "RouteTable.RouteTableId"}
	securityGroups   = described{"DescribeSecurityGroups", "SecurityGroups", "GroupIds", "GroupId", "GroupId"}
	launchTemplates  = described{"DescribeLaunchTemplates", "LaunchTemplates", "LaunchTemplateIds", "LaunchTemplateId", "LaunchTemplate.LaunchTemplateId"}
)

// filtered are the items that a filter chooses.
func (d described) filtered(ctx context.Context, j *job, filters map[string]string) ([]any, error) {
	member := "Filters"
	if !takes(ec2, d.action, member) {
		member = "Filter"
	}
	var all []any
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		all = append(all, map[string]any{"Name": name, "Values": []any{filters[name]}})
	}
	out, err := j.ask(ctx, ec2, d.action, map[string]any{member: all})
	return list(out, d.list), err
}

// find reads an item by its id. The error is errGone if there is none.
func (d described) find(ctx context.Context, j *job, id string) (any, error) {
	out, err := j.ask(ctx, ec2, d.action, map[string]any{d.ids: []any{id}})
	if err != nil {
		return nil, err
	}
	items := list(out, d.list)
	if len(items) == 0 {
		return nil, errGone
	}
	return items[0], nil
}

// create makes an item, unless there is one with the tag of the creation. The id is an attribute of the same name.
func (d described) create(ctx context.Context, j *job) (map[string]any, error) {
	had, err := d.filtered(ctx, j, map[string]string{"tag:" + mark: j.token()})
	if err != nil {
		return nil, err
	}
	if len(had) > 0 {
		return map[string]any{d.id: text(had[0], d.id)}, nil
	}
	return d.order(ctx, j)
}

// order makes an item by an action that takes a client token.
func (d described) order(ctx context.Context, j *job) (map[string]any, error) {
	out, err := j.first(ctx)
	if err != nil {
		return nil, err
	}
	id := text(out, d.made)
	if id == "" {
		return nil, fmt.Errorf("%s answered without %s", j.of.Create[0], d.made)
	}
	return map[string]any{d.id: id}, nil
}

// deletes removes an item by one action, whose member has the id.
func (d described) deletes(action string) func(ctx context.Context, j *job) (bool, error) {
	return func(ctx context.Context, j *job) (bool, error) {
		_, err := j.ask(ctx, ec2, action, map[string]any{d.id: j.attribute(d.id)})
		return err == nil, err
	}
}

// reads returns members of the description as attributes.
func (d described) reads(names ...string) func(ctx context.Context, j *job) (map[string]any, bool, error) {
	return func(ctx context.Context, j *job) (map[string]any, bool, error) {
		item, err := d.find(ctx, j, j.attribute(d.id))
		if err != nil {
			return nil, false, err
		}
		return picked(item, names...), true, nil
	}
}

// picked are members of an output as attributes.
func picked(item any, names ...string) map[string]any {
	attributes := map[string]any{}
	for _, name := range names {
		if value := at(item, name); value != nil {
			attributes[name] = textOf(value)
		}
	}
	return attributes
}

const ec2 = "ec2"

func networkHandlers() map[string]handler {
	return map[string]handler{
		"AWS::EC2::VPC": {
			create: vpcs.create, complete: setsVPC, read: readVPC, remove: vpcs.deletes("DeleteVpc"),
			update: func(ctx context.Context, j *job) (bool, error) { return both(ctx, j, setsVPC, vpcs.retag) },
		},
		"AWS::EC2::Subnet": {
			create: subnets.create, complete: setsSubnet, read: readSubnet, remove: subnets.deletes("DeleteSubnet"),
			update: func(ctx context.Context, j *job) (bool, error) { return both(ctx, j, setsSubnet, subnets.retag) },
		},
		"AWS::EC2::InternetGateway": {
			create: internetGateways.create, read: internetGateways.reads("InternetGatewayId"), update: internetGateways.retags, remove: internetGateways.deletes("DeleteInternetGateway"),
		},
		"AWS::EC2::VPCGatewayAttachment": {create: attach, read: readAttachment, update: moveAttachment, remove: detach},
		"AWS::EC2::NatGateway":           {create: natGateways.order, read: readNatGateway, update: natGateways.retags, remove: removeNatGateway},
		"AWS::EC2::EIP":                  {create: createAddress, read: addresses.reads("AllocationId", "PublicIp"), update: addresses.retags, remove: addresses.deletes("ReleaseAddress")},
	}
}

// both does two things of an update.
func both(ctx context.Context, j *job, steps ...func(context.Context, *job) error) (bool, error) {
	for _, step := range steps {
		if err := step(ctx, j); err != nil {
			return false, err
		}
	}
	return true, nil
}

// sets puts boolean properties that the template has, or had, by an action that takes one of them at a time.
func sets(ctx context.Context, j *job, action, id string, defaults map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		value, asked := j.is[name]
		if !asked {
			if _, had := j.was[name]; !had {
				continue
			}
			value = defaults[name]
		}
		if _, err := j.ask(ctx, ec2, action, map[string]any{id: j.attribute(id), name: value}); err != nil {
			return err
		}
	}
	return nil
}

func setsVPC(ctx context.Context, j *job) error {
	return sets(ctx, j, "ModifyVpcAttribute", "VpcId", map[string]bool{"EnableDnsSupport": true, "EnableDnsHostnames": false})
}

func setsSubnet(ctx context.Context, j *job) error {
	for _, name := range []string{"EnableLniAtDeviceIndex", "PrivateDnsNameOptionsOnLaunch"} {
		if _, asked := j.is[name]; asked {
			return fmt.Errorf("%s is not supported: remove it from the template", name)
		}
	}
	return sets(ctx, j, "ModifySubnetAttribute", "SubnetId", map[string]bool{"AssignIpv6AddressOnCreation": false, "EnableDns64": false, "MapPublicIpOnLaunch": false})
}

func readVPC(ctx context.Context, j *job) (map[string]any, bool, error) {
	id := j.attribute("VpcId")
	vpc, err := vpcs.find(ctx, j, id)
	if err != nil {
		return nil, false, err
	}
	attributes := picked(vpc, "VpcId", "CidrBlock")
	attributes["CidrBlockAssociations"] = []any{}
	for _, one := range list(vpc, "CidrBlockAssociationSet") {
		attributes["CidrBlockAssociations"] = append(attributes["CidrBlockAssociations"].([]any), text(one, "AssociationId"))
	}
	attributes["Ipv6CidrBlocks"] = blocks(vpc)
	groups, err := securityGroups.filtered(ctx, j, map[string]string{"vpc-id": id, "group-name": "default"})
	if err != nil {
		return nil, false, err
	}
	acls, err := described{action: "DescribeNetworkAcls", list: "NetworkAcls"}.filtered(ctx, j, map[string]string{"vpc-id": id, "default": "true"})
	if err != nil || len(groups) == 0 || len(acls) == 0 {
		return attributes, false, err
	}
	attributes["DefaultSecurityGroup"], attributes["DefaultNetworkAcl"] = text(groups[0], "GroupId"), text(acls[0], "NetworkAclId")
	return attributes, text(vpc, "State") == "available", nil
}

// blocks are the IPv6 ranges of a VPC or subnet.
func blocks(item any) []any {
	all := []any{}
	for _, one := range list(item, "Ipv6CidrBlockAssociationSet") {
		all = append(all, text(one, "Ipv6CidrBlock"))
	}
	return all
}

func readSubnet(ctx context.Context, j *job) (map[string]any, bool, error) {
	id := j.attribute("SubnetId")
	subnet, err := subnets.find(ctx, j, id)
	if err != nil {
		return nil, false, err
	}
	attributes := picked(subnet, "SubnetId", "VpcId", "CidrBlock", "AvailabilityZone", "AvailabilityZoneId", "OutpostArn")
	attributes["Ipv6CidrBlocks"] = blocks(subnet)
	acls, err := described{action: "DescribeNetworkAcls", list: "NetworkAcls"}.filtered(ctx, j, map[string]string{"association.subnet-id": id})
	if err != nil {
		return nil, false, err
	}
	for _, acl := range acls {
		for _, tie := range list(acl, "Associations") {
			if text(tie, "SubnetId") == id {
				attributes["NetworkAclAssociationId"] = text(tie, "NetworkAclAssociationId")
			}
		}
	}
	return attributes, text(subnet, "State") == "available", nil
}

// createAddress allocates an address, whose public address is the physical id.
func createAddress(ctx context.Context, j *job) (map[string]any, error) {
	if j.property("InstanceId") != "" {
		return nil, errors.New("InstanceId is not supported: remove it from the template, and associate the address by EC2's API")
	}
	made, err := addresses.create(ctx, j)
	if err != nil {
		return nil, err
	}
	address, err := addresses.find(ctx, j, textOf(made["AllocationId"]))
	if err != nil {
		return nil, err
	}
	return picked(address, "AllocationId", "PublicIp"), nil
}

func readNatGateway(ctx context.Context, j *job) (map[string]any, bool, error) {
	gateway, err := natGateways.find(ctx, j, j.attribute("NatGatewayId"))
	if err != nil {
		return nil, false, err
	}
	if state := text(gateway, "State"); state == "failed" || state == "deleted" || state == "deleting" {
		return nil, false, fmt.Errorf("NatGateway %s is in state %s and hence failed to stabilize. Detailed failure message: %s", j.attribute("NatGatewayId"), state, text(gateway, "FailureMessage"))
	}
	return picked(gateway, "NatGatewayId"), text(gateway, "State") == "available", nil
}

func removeNatGateway(ctx context.Context, j *job) (bool, error) {
	gateway, err := natGateways.find(ctx, j, j.attribute("NatGatewayId"))
	if err != nil {
		return false, err
	}
	switch text(gateway, "State") {
	case "deleted":
		return true, nil
	case "deleting":
		return false, nil
	}
	_, err = j.ask(ctx, ec2, "DeleteNatGateway", map[string]any{"NatGatewayId": j.attribute("NatGatewayId")})
	return false, err
}

// attach attaches an internet gateway; it may be attached by an earlier call.
func attach(ctx context.Context, j *job) (map[string]any, error) {
	if err := attachTo(ctx, j, j.property("InternetGatewayId")); err != nil {
		return nil, err
	}
	return map[string]any{"AttachmentType": "IGW"}, nil
}

func attachTo(ctx context.Context, j *job, gateway string) error {
	vpc := j.property("VpcId")
	_, err := j.ask(ctx, ec2, "AttachInternetGateway", map[string]any{"InternetGatewayId": gateway, "VpcId": vpc})
	if !hasCode(err, "Resource.AlreadyAssociated") {
		return err
	}
	item, unread := internetGateways.find(ctx, j, gateway)
	if unread != nil {
		return unread
	}
	if attached(item) != vpc {
		return err
	}
	return nil
}

// attached is the VPC that an internet gateway is attached to; empty without one.
func attached(gateway any) string {
	return text(firstOf(gateway, "Attachments"), "VpcId")
}

func readAttachment(ctx context.Context, j *job) (map[string]any, bool, error) {
	item, err := internetGateways.find(ctx, j, j.property("InternetGatewayId"))
	if err != nil {
		return nil, false, err
	}
	return map[string]any{"AttachmentType": "IGW"}, attached(item) == j.property("VpcId"), nil
}

func moveAttachment(ctx context.Context, j *job) (bool, error) {
	from, to := textOf(j.was["InternetGatewayId"]), j.property("InternetGatewayId")
	if from != to && from != "" {
		_, err := j.ask(ctx, ec2, "DetachInternetGateway", map[string]any{"InternetGatewayId": from, "VpcId": j.property("VpcId")})
		if err != nil && !isGone(err) {
			return false, err
		}
	}
	err := attachTo(ctx, j, to)
	return err == nil, err
}

func detach(ctx context.Context, j *job) (bool, error) {
	_, err := j.ask(ctx, ec2, "DetachInternetGateway", map[string]any{"InternetGatewayId": j.property("InternetGatewayId"), "VpcId": j.property("VpcId")})
	return err == nil, err
}
