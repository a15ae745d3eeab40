// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

func (w *world) table(request string) string {
	w.t.Helper()
	return between(w.ask(request, 200), "<routeTableId>", "</routeTableId>")
}

func TestTheMainRouteTable(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"))
	mains := "DescribeRouteTables&Filter.1.Name=vpc-id&Filter.1.Value.1=" + vpcA + "&Filter.2.Name=association.main&Filter.2.Value.1=true"
	shown := w.ask(mains, 200, "<destinationCidrBlock>10.0.0.0/16</destinationCidrBlock><gatewayId>local</gatewayId>", "<origin>CreateRouteTable</origin><state>active</state>", "<main>true</main>", "<associationState><state>associated</state>")
	first, association := between(shown, "<routeTableId>", "</routeTableId>"), between(shown, "<routeTableAssociationId>", "</routeTableAssociationId>")
	if again := w.ask(mains, 200); between(again, "<routeTableId>", "<") != first || between(again, "<routeTableAssociationId>", "<") != association {
		t.Errorf("another one each time: %s", again)
	}
	w.ask("CreateTags&ResourceId.1="+first+"&Tag.1.Key=team&Tag.1.Value=a", 200) // from here on it is kept
	gateway := w.withGateway(vpcA)
	w.ask("CreateRoute&RouteTableId="+first+"&DestinationCidrBlock=0.0.0.0/0&GatewayId="+gateway, 200, "<return>true</return>")
	w.ask(mains, 200, "<key>team</key>", "<destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><gatewayId>"+gateway+"</gatewayId>", first)
	w.ask("DeleteRouteTable&RouteTableId="+first, 400, "DependencyViolation", association)
	w.ask("DisassociateRouteTable&AssociationId="+association, 400, "cannot disassociate the main route table association "+association)

	second := w.table("CreateRouteTable&VpcId=" + vpcA)
	w.ask("ReplaceRouteTableAssociation&AssociationId="+association+"&RouteTableId="+second+"&DryRun=true", 412)
	moved := between(w.ask("ReplaceRouteTableAssociation&AssociationId="+association+"&RouteTableId="+second, 200), "<newAssociationId>", "</newAssociationId>")
	w.ask(mains, 200, second, moved)
	w.ask("DetachInternetGateway&InternetGatewayId="+gateway+"&VpcId="+vpcA, 200)
	w.ask("DescribeRouteTables&RouteTableId.1="+first, 200, "<state>blackhole</state>")
	w.ask("DeleteSubnet&SubnetId="+subnetA, 200)
	w.ask("DeleteVpc&VpcId="+vpcA, 400, "DependencyViolation", first) // it is one like others now
	w.ask("DeleteRouteTable&RouteTableId="+first, 200)
	w.ask("DescribeRouteTables&RouteTableId.1="+first, 400, "InvalidRouteTableID.NotFound")
	w.ask("DeleteVpc&VpcId="+vpcA, 200)
	w.ask("DescribeRouteTables&RouteTableId.1="+second, 400, "InvalidRouteTableID.NotFound")
	w.nothingOfVPCs()
}

// nothingOfVPCs fails if records of VPCs are left.
func (w *world) nothingOfVPCs() {
	w.t.Helper()
	var all v1alpha1.AWSRecordList
	if err := w.api.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range all.Items {
		if r.Spec.Type != "internet-gateway" && r.Spec.Type != "elastic-ip" {
			w.t.Errorf("left: %s %s %s", r.Spec.Type, r.Name, r.Spec.Data.Raw)
		}
	}
}

func TestRoutes(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), aVPC(vpcB, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"), aGroupsMachine(instanceA))
	table := w.table("CreateRouteTable&VpcId=" + vpcA + "&ClientToken=t&TagSpecification.1.ResourceType=route-table&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a")
	if again := w.table("CreateRouteTable&VpcId=" + vpcA + "&ClientToken=t&TagSpecification.1.ResourceType=route-table&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a"); again != table {
		t.Errorf("sent twice: %s and %s", table, again)
	}
	w.wasAsked("ec2:CreateRouteTable arn:aws:ec2:eu-west-1:000000000000:route-table/* aws:requesttag/team=a aws:tagkeys=team ec2:region=eu-west-1 ec2:vpc=arn:aws:ec2:eu-west-1:000000000000:vpc/"+vpcA,
		"ec2:CreateRouteTable arn:aws:ec2:eu-west-1:000000000000:vpc/"+vpcA)
	gateway, far := w.withGateway(vpcA), w.withGateway(vpcB)
	nat := between(w.ask("CreateNatGateway&ConnectivityType=private&SubnetId="+subnetA, 200), "<natGatewayId>", "</natGatewayId>")
	to := "&RouteTableId=" + table + "&DestinationCidrBlock="
	w.ask("CreateRoute"+to+"0.0.0.0/0&GatewayId="+gateway, 200)
	w.wasAsked("ec2:CreateRoute arn:aws:ec2:eu-west-1:000000000000:route-table/" + table + " aws:resourcetag/team=a ec2:region=eu-west-1 ec2:resourcetag/team=a ec2:routetableid=" + table)
	w.ask("CreateRoute"+to+"0.0.0.0/0&NatGatewayId="+nat, 400, "<Code>RouteAlreadyExists</Code><Message>The route identified by 0.0.0.0/0 already exists.")
	w.ask("ReplaceRoute"+to+"0.0.0.0/0&NatGatewayId="+nat, 200, "<return>true</return>")
	w.ask("DescribeRouteTables&RouteTableId.1="+table, 200, "<natGatewayId>"+nat+"</natGatewayId><origin>CreateRoute</origin><state>active</state>")
	w.ask("CreateRoute"+to+"192.168.1.9/16&InstanceId="+instanceA, 200)
	w.ask("DescribeRouteTables&Filter.1.Name=route.instance-id&Filter.1.Value.1="+instanceA, 200, "<destinationCidrBlock>192.168.0.0/16</destinationCidrBlock>", "<networkInterfaceId>eni-0000000000000000a</networkInterfaceId>")
	w.ask("DeleteNatGateway&NatGatewayId="+nat, 200)
	w.ask("DescribeRouteTables&RouteTableId.1="+table, 200, "<state>blackhole</state>")
	for request, says := range map[string]string{
		"CreateRoute" + to + "10.0.0.0/16&GatewayId=" + gateway:                                              "RouteAlreadyExists",
		"CreateRoute" + to + "172.16.0.0/12":                                                                 "MissingParameter",
		"CreateRoute" + to + "172.16.0.0/12&GatewayId=" + gateway + "&InstanceId=" + instanceA:               "InvalidParameterCombination",
		"CreateRoute" + to + "172.16.0.0/12&GatewayId=" + far:                                                "route table " + table + " and network gateway " + far + " belong to different networks",
		"CreateRoute" + to + "172.16.0.0/12&GatewayId=igw-0000000000000000c":                                 "InvalidInternetGatewayID.NotFound",
		"CreateRoute" + to + "172.16.0.0/12&NatGatewayId=" + nat:                                             "InvalidNatGatewayID.NotFound",
		"CreateRoute" + to + "172.16.0.0/12&InstanceId=" + instanceB:                                         "InvalidInstanceID.NotFound",
		"CreateRoute" + to + "172.16.0.0/12&TransitGatewayId=tgw-1":                                          "does not support TransitGatewayId",
		"CreateRoute" + to + "east&GatewayId=" + gateway:                                                     "This is not a valid CIDR block",
		"ReplaceRoute" + to + "172.16.0.0/12&GatewayId=" + gateway:                                           "InvalidRoute.NotFound",
		"DeleteRoute" + to + "172.16.0.0/12":                                                                 "no route with destination-cidr-block 172.16.0.0/12 in route table " + table,
		"DeleteRoute" + to + "10.0.0.0/16":                                                                   "cannot remove local route 10.0.0.0/16",
		"CreateRouteTable&VpcId=vpc-0000000000000000c":                                                       "InvalidVpcID.NotFound",
		"CreateRoute&RouteTableId=rtb-0000000000000000c&DestinationCidrBlock=0.0.0.0/0&GatewayId=" + gateway: "InvalidRouteTableID.NotFound",
	} {
		w.ask(request, 400, says)
	}
	w.ask("DeleteRoute"+to+"0.0.0.0/0&DryRun=true", 412)
	w.ask("DeleteRoute"+to+"0.0.0.0/0", 200)
	if text := w.ask("DescribeRouteTables&RouteTableId.1="+table, 200); strings.Contains(text, "0.0.0.0/0") {
		t.Errorf("deleted: %s", text)
	}
	// Who may not ask does not hear what is there.
	w.gate.Denies = true
	w.ask("DeleteRouteTable&RouteTableId="+table, 403, "UnauthorizedOperation")
	w.ask("DeleteRouteTable&RouteTableId=rtb-0000000000000000c", 403, "UnauthorizedOperation")
	w.ask("DisassociateRouteTable&AssociationId=rtbassoc-0000000000000000c", 403, "UnauthorizedOperation")
	w.ask("ReplaceNetworkAclAssociation&AssociationId=aclassoc-0000000000000000c&NetworkAclId=acl-0000000000000000c", 403, "UnauthorizedOperation")
	w.ask("DisassociateAddress&AssociationId=eipassoc-0000000000000000c", 403, "UnauthorizedOperation")
}

func TestAssociationsOfRouteTables(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), aVPC(vpcB, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"))
	table, other, far := w.table("CreateRouteTable&VpcId="+vpcA), w.table("CreateRouteTable&VpcId="+vpcA), w.table("CreateRouteTable&VpcId="+vpcB)
	association := between(w.ask("AssociateRouteTable&RouteTableId="+table+"&SubnetId="+subnetA, 200, "<associationState><state>associated</state>"), "<associationId>", "</associationId>")
	w.wasAsked("ec2:AssociateRouteTable arn:aws:ec2:eu-west-1:000000000000:route-table/"+table, "ec2:AssociateRouteTable arn:aws:ec2:eu-west-1:000000000000:subnet/"+subnetA)
	w.ask("AssociateRouteTable&RouteTableId="+table+"&SubnetId="+subnetA, 200, association)
	w.ask("AssociateRouteTable&RouteTableId="+other+"&SubnetId="+subnetA, 400, "Resource.AlreadyAssociated")
	w.ask("AssociateRouteTable&RouteTableId="+far+"&SubnetId="+subnetA, 400, "belong to different networks")
	w.ask("AssociateRouteTable&RouteTableId="+table, 400, "MissingParameter")
	w.ask("DescribeRouteTables&Filter.1.Name=association.route-table-association-id&Filter.1.Value.1="+association, 200, "<main>false</main>", "<subnetId>"+subnetA+"</subnetId>")
	w.ask("DeleteRouteTable&RouteTableId="+table, 400, "DependencyViolation")
	w.ask("ReplaceRouteTableAssociation&AssociationId="+association+"&RouteTableId="+far, 400, "belong to different networks")
	moved := between(w.ask("ReplaceRouteTableAssociation&AssociationId="+association+"&RouteTableId="+other, 200), "<newAssociationId>", "</newAssociationId>")
	w.ask("DisassociateRouteTable&AssociationId="+association, 400, "InvalidAssociationID.NotFound")
	w.wasAsked("ec2:ReplaceRouteTableAssociation arn:aws:ec2:eu-west-1:000000000000:subnet/" + subnetA)
	w.ask("DeleteRouteTable&RouteTableId="+table, 200)
	w.ask("DisassociateRouteTable&AssociationId=rtbassoc-1", 400, "<Code>InvalidAssociationID.NotFound</Code><Message>Invalid association ID: ", "rtbassoc-1")
	w.ask("DisassociateRouteTable&AssociationId="+moved+"&DryRun=true", 412)
	w.ask("DisassociateRouteTable&AssociationId="+moved, 200)
	// A subnet that goes takes its association along.
	w.ask("AssociateRouteTable&RouteTableId="+other+"&SubnetId="+subnetA, 200)
	w.ask("DeleteSubnet&SubnetId="+subnetA, 200)
	w.ask("DeleteRouteTable&RouteTableId="+other, 200)
	w.ask("DeleteVpc&VpcId="+vpcA, 200)
	w.ask("DeleteRouteTable&RouteTableId="+far, 200)
	w.ask("DeleteVpc&VpcId="+vpcB, 200)
	w.nothingOfVPCs()
}

func TestNetworkACLs(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), aVPC(vpcB, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"))
	defaults := "DescribeNetworkAcls&Filter.1.Name=vpc-id&Filter.1.Value.1=" + vpcA + "&Filter.2.Name=default&Filter.2.Value.1=true"
	shown := w.ask(defaults, 200, "<default>true</default>", "<ruleNumber>100</ruleNumber>", "<ruleNumber>32767</ruleNumber>", "<ruleAction>deny</ruleAction>", "<subnetId>"+subnetA+"</subnetId>")
	main, association := between(shown, "<networkAclId>", "</networkAclId>"), between(shown, "<networkAclAssociationId>", "</networkAclAssociationId>")
	if strings.Count(shown, "<ruleNumber>") != 4 {
		t.Errorf("the default one: %s", shown)
	}
	acl := between(w.ask("CreateNetworkAcl&VpcId="+vpcA+"&TagSpecification.1.ResourceType=network-acl&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a", 200,
		"<default>false</default>", "<associationSet></associationSet>", "<ruleNumber>32767</ruleNumber>"), "<networkAclId>", "</networkAclId>")
	far := between(w.ask("CreateNetworkAcl&VpcId="+vpcB, 200), "<networkAclId>", "</networkAclId>")
	entry := "Entry&NetworkAclId=" + acl + "&RuleNumber=10&Egress=false&Protocol=6&RuleAction=allow&CidrBlock=10.0.1.0/16&PortRange.From=80&PortRange.To=81&Icmp.Type=0&Icmp.Code=0"
	w.ask("CreateNetworkAcl"+entry, 200, "<return>true</return>")
	w.ask("CreateNetworkAcl"+entry, 400, "NetworkAclEntryAlreadyExists")
	w.ask("ReplaceNetworkAcl"+strings.Replace(entry, "From=80", "From=79", 1), 200)
	w.ask("DescribeNetworkAcls&NetworkAclId.1="+acl, 200, "<ruleNumber>10</ruleNumber>", "<cidrBlock>10.0.0.0/16</cidrBlock>", "<portRange><from>79</from><to>81</to></portRange>", "<protocol>6</protocol>")
	for old, changed := range map[string][2]string{
		"Protocol=6":                         {"Protocol=300", "Unknown protocol"},
		"RuleNumber=10":                      {"RuleNumber=32767", "ruleNumber is invalid"},
		"RuleAction=allow":                   {"RuleAction=log", "ruleAction"},
		"CidrBlock=10.0.1.0/16":              {"CidrBlock=ten", "not a valid CIDR block"},
		"&PortRange.From=80&PortRange.To=81": {"", "MissingParameter"},
		"PortRange.To=81":                    {"PortRange.To=79", "Invalid TCP/UDP port range"},
		"CidrBlock=10.0.1.0/16&":             {"Ipv6CidrBlock=10.0.0.0/8&", "parameter ipv6CidrBlock is invalid"},
		"CidrBlock=10.0.1.0/16&P":            {"Ipv6CidrBlock=::ffff:10.0.0.0/104&P", "parameter ipv6CidrBlock is invalid"},
		"&CidrBlock":                         {"&Ipv6CidrBlock=::/0&CidrBlock", "InvalidParameterCombination"},
	} {
		w.ask("CreateNetworkAcl"+strings.Replace(strings.Replace(entry, old, changed[0], 1), "RuleNumber=10&", "RuleNumber=20&", 1), 400, changed[1])
	}
	w.ask("DeleteNetworkAclEntry&NetworkAclId="+acl+"&RuleNumber=11&Egress=false", 400, "InvalidNetworkAclEntry.NotFound")
	w.ask("DeleteNetworkAclEntry&NetworkAclId="+acl+"&RuleNumber=10&Egress=true", 400, "InvalidNetworkAclEntry.NotFound")
	w.ask("DeleteNetworkAclEntry&NetworkAclId="+acl+"&RuleNumber=32767&Egress=true", 400, "InvalidParameterValue")
	w.ask("DeleteNetworkAclEntry&NetworkAclId="+acl+"&RuleNumber=10&Egress=false", 200)

	w.ask("ReplaceNetworkAclAssociation&AssociationId="+association+"&NetworkAclId="+far, 400, "belong to different networks")
	moved := between(w.ask("ReplaceNetworkAclAssociation&AssociationId="+association+"&NetworkAclId="+acl, 200), "<newAssociationId>", "</newAssociationId>")
	w.wasAsked("ec2:ReplaceNetworkAclAssociation arn:aws:ec2:eu-west-1:000000000000:network-acl/"+acl+" aws:resourcetag/team=a ec2:networkaclid="+acl,
		"ec2:ReplaceNetworkAclAssociation arn:aws:ec2:eu-west-1:000000000000:subnet/"+subnetA)
	w.ask("DescribeNetworkAcls&Filter.1.Name=association.subnet-id&Filter.1.Value.1="+subnetA, 200, "<networkAclId>"+acl, moved)
	w.ask("DeleteNetworkAcl&NetworkAclId="+acl, 400, "DependencyViolation", subnetA)
	w.ask("ReplaceNetworkAclAssociation&AssociationId="+association+"&NetworkAclId="+main, 400, "InvalidAssociationID.NotFound")
	w.ask("ReplaceNetworkAclAssociation&AssociationId="+moved+"&NetworkAclId="+main, 200)
	w.ask("DeleteNetworkAcl&NetworkAclId="+main, 400, "cannot delete default network ACL "+main)
	// An entry of the default one can go, and the rest of it stays.
	w.ask("DeleteNetworkAclEntry&NetworkAclId="+main+"&RuleNumber=100&Egress=false", 200)
	if shown := w.ask(defaults, 200); strings.Count(shown, "<ruleNumber>") != 3 {
		t.Errorf("the default one without an entry: %s", shown)
	}
	w.ask("DeleteSubnet&SubnetId="+subnetA, 200)
	w.ask("DeleteVpc&VpcId="+vpcA, 400, "DependencyViolation", acl)
	w.ask("DeleteNetworkAcl&NetworkAclId="+acl, 200)
	w.ask("DeleteVpc&VpcId="+vpcA, 200)
	w.ask("DeleteNetworkAcl&NetworkAclId="+far, 200)
	w.nothingOfVPCs()
}

// Terraform's VPC module has an entry for IPv6 in the default ACL. It is kept as it was given, and so are routes of
// IPv6; machines have no IPv6.
func TestIPv6OfRecords(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"))
	acl := between(w.ask("DescribeNetworkAcls&Filter.1.Name=vpc-id&Filter.1.Value.1="+vpcA, 200), "<networkAclId>", "</networkAclId>")
	entry := "Entry&NetworkAclId=" + acl + "&RuleNumber=101&Egress=true&RuleAction=allow"
	w.ask("CreateNetworkAcl"+entry+"&Protocol=-1&Ipv6CidrBlock=2001:DB8::1/32&PortRange.From=0&PortRange.To=0", 200)
	shown := w.ask("DescribeNetworkAcls&Filter.1.Name=entry.ipv6-cidr&Filter.1.Value.1=2001:db8::/32", 200, "<ipv6CidrBlock>2001:db8::/32</ipv6CidrBlock>")
	if one := between(shown, "<ruleNumber>100</ruleNumber>", "<ruleNumber>101</ruleNumber>"); strings.Count(one, "<cidrBlock>") != 0 {
		t.Errorf("the entry has a range of IPv4, too: %s", one)
	}
	w.ask("ReplaceNetworkAcl"+entry+"&Protocol=58&Ipv6CidrBlock=::/0", 400, "MissingParameter", "Icmp.Type")
	w.ask("ReplaceNetworkAcl"+entry+"&Protocol=58&Ipv6CidrBlock=::/0&Icmp.Type=128&Icmp.Code=-1", 200)
	w.ask("DescribeNetworkAcls&NetworkAclId.1="+acl, 200, "<protocol>58</protocol>", "<icmpTypeCode><code>-1</code><type>128</type></icmpTypeCode>")
	w.ask("DeleteNetworkAclEntry&NetworkAclId="+acl+"&RuleNumber=101&Egress=true", 200)

	table, gateway := w.table("CreateRouteTable&VpcId="+vpcA), w.withGateway(vpcA)
	to := "&RouteTableId=" + table + "&DestinationIpv6CidrBlock="
	w.ask("CreateRoute"+to+"::/0&DestinationCidrBlock=0.0.0.0/0&GatewayId="+gateway, 400, "InvalidParameterCombination")
	w.ask("CreateRoute"+to+"0.0.0.0/0&GatewayId="+gateway, 400, "parameter destinationIpv6CidrBlock is invalid")
	w.ask("CreateRoute"+to+"::/0&GatewayId="+gateway, 200)
	w.ask("CreateRoute&RouteTableId="+table+"&DestinationCidrBlock=0.0.0.0/0&GatewayId="+gateway, 200)
	w.ask("DescribeRouteTables&Filter.1.Name=route.destination-ipv6-cidr-block&Filter.1.Value.1=::/0", 200,
		"<item><destinationIpv6CidrBlock>::/0</destinationIpv6CidrBlock><gatewayId>"+gateway+"</gatewayId>", "<item><destinationCidrBlock>0.0.0.0/0</destinationCidrBlock>")
	w.ask("ReplaceRoute"+to+"::/0&GatewayId="+gateway, 200)
	w.ask("DeleteRoute"+to+"2001:db8::/32", 400, "no route with destination-ipv6-cidr-block 2001:db8::/32 in route table "+table)
	w.ask("DeleteRoute"+to+"::/0", 200)
	if text := w.ask("DescribeRouteTables&RouteTableId.1="+table, 200, "0.0.0.0/0"); strings.Contains(text, "::/0") {
		t.Errorf("deleted: %s", text)
	}
}
