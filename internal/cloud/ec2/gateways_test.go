// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

func TestALifeOfAnInternetGateway(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), aVPC(vpcB, "10.1.0.0/16"))
	create := "CreateInternetGateway&TagSpecification.1.ResourceType=internet-gateway&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a"
	id := between(w.ask(create, 200, "<attachmentSet></attachmentSet>", "<key>team</key>"), "<internetGatewayId>", "</internetGatewayId>")
	other := between(w.ask("CreateInternetGateway", 200), "<internetGatewayId>", "</internetGatewayId>")
	w.wasAsked("ec2:CreateInternetGateway arn:aws:ec2:eu-west-1:000000000000:internet-gateway/* aws:requesttag/team=a aws:tagkeys=team ec2:region=eu-west-1",
		"ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:internet-gateway/*")
	w.ask("AttachInternetGateway&InternetGatewayId="+id+"&VpcId="+vpcA+"&DryRun=true", 412)
	w.ask("AttachInternetGateway&InternetGatewayId="+id+"&VpcId="+vpcA, 200, "<return>true</return>")
	w.wasAsked("ec2:AttachInternetGateway arn:aws:ec2:eu-west-1:000000000000:internet-gateway/"+id+" aws:resourcetag/team=a ec2:internetgatewayid="+id,
		"ec2:AttachInternetGateway arn:aws:ec2:eu-west-1:000000000000:vpc/"+vpcA)
	w.ask("AttachInternetGateway&InternetGatewayId="+id+"&VpcId="+vpcB, 400, "<Code>Resource.AlreadyAssociated</Code>")
	w.ask("AttachInternetGateway&InternetGatewayId="+other+"&VpcId="+vpcA, 400, "Network "+vpcA+" already has an internet gateway attached")
	if text := w.ask("DescribeInternetGateways&Filter.1.Name=attachment.vpc-id&Filter.1.Value.1="+vpcA, 200, "<state>available</state><vpcId>"+vpcA+"</vpcId>", "<ownerId>"); strings.Contains(text, other) {
		t.Errorf("the filter lets through %s", text)
	}
	w.ask("DeleteVpc&VpcId="+vpcA, 400, "DependencyViolation", id)
	w.ask("DeleteInternetGateway&InternetGatewayId="+id, 400, "DependencyViolation")
	w.ask("DetachInternetGateway&InternetGatewayId="+id+"&VpcId="+vpcB, 400, "Gateway.NotAttached")
	w.ask("DetachInternetGateway&InternetGatewayId="+id+"&VpcId="+vpcA, 200)
	w.ask("DetachInternetGateway&InternetGatewayId="+id+"&VpcId="+vpcA, 400, "Gateway.NotAttached")
	w.ask("CreateTags&ResourceId.1="+id+"&Tag.1.Key=more&Tag.1.Value=x", 200)
	w.ask("DescribeTags", 200, "<resourceId>"+id+"</resourceId><resourceType>internet-gateway</resourceType>")
	w.ask("DeleteInternetGateway&InternetGatewayId="+id, 200)
	w.ask("DescribeInternetGateways&InternetGatewayId.1="+id, 400, "InvalidInternetGatewayID.NotFound")
	w.ask("DeleteInternetGateway&InternetGatewayId=igw-1", 400, "InvalidInternetGatewayId.Malformed")
	w.ask("DeleteVpc&VpcId="+vpcA, 200)
}

// withGateway attaches an internet gateway to a VPC.
func (w *world) withGateway(vpc string) string {
	w.t.Helper()
	id := between(w.ask("CreateInternetGateway", 200), "<internetGatewayId>", "</internetGatewayId>")
	w.ask("AttachInternetGateway&InternetGatewayId="+id+"&VpcId="+vpc, 200)
	return id
}

func TestALifeOfANATGateway(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"))
	allocated := w.ask("AllocateAddress&Domain=vpc", 200, "<publicIp>203.0.113.1</publicIp>", "<domain>vpc</domain>", "<publicIpv4Pool>amazon</publicIpv4Pool>", "<networkBorderGroup>eu-west-1</networkBorderGroup>")
	address := between(allocated, "<allocationId>", "</allocationId>")
	create := "CreateNatGateway&SubnetId=" + subnetA + "&AllocationId=" + address + "&ClientToken=t1&TagSpecification.1.ResourceType=natgateway&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a"

	failed := between(w.ask(strings.Replace(create, "t1", "t0", 1), 200, "<state>failed</state>", "<failureCode>Gateway.NotAttached</failureCode>"), "<natGatewayId>", "</natGatewayId>")
	w.ask("DescribeSubnets", 200, "<availableIpAddressCount>251</availableIpAddressCount>")
	gateway := w.withGateway(vpcA)
	made := w.ask(create, 200, "<state>available</state>", "<connectivityType>public</connectivityType>", "<publicIp>203.0.113.1</publicIp>", "<privateIp>10.0.0.254</privateIp>",
		"<isPrimary>true</isPrimary>", "<status>succeeded</status>", "<key>team</key>", "<clientToken>t1</clientToken>")
	id := between(made, "<natGatewayId>", "</natGatewayId>")
	if again := w.ask(create, 200); between(again, "<natGatewayId>", "</natGatewayId>") != id {
		t.Errorf("sent twice: %s", again)
	}
	w.wasAsked("ec2:CreateNatGateway arn:aws:ec2:eu-west-1:000000000000:natgateway/* aws:requesttag/team=a", "ec2:CreateNatGateway arn:aws:ec2:eu-west-1:000000000000:elastic-ip/"+address,
		"ec2:CreateNatGateway arn:aws:ec2:eu-west-1:000000000000:subnet/"+subnetA)
	w.ask(strings.Replace(create, "natgateway&", "natgateway&PrivateIpAddress=10.0.0.9&", 1), 400, "IdempotentParameterMismatch")
	w.ask(strings.Replace(create, "t1", "t2", 1), 400, "Resource.AlreadyAssociated")
	w.ask("DescribeSubnets", 200, "<availableIpAddressCount>250</availableIpAddressCount>")
	w.ask("DescribeAddresses&AllocationId.1="+address, 200, "<associationId>eipassoc-", "<privateIpAddress>10.0.0.254</privateIpAddress>", "<networkInterfaceId>eni-")
	w.ask("DescribeNatGateways&Filter.1.Name=state&Filter.1.Value.1=available", 200, id)
	w.ask("DeleteSubnet&SubnetId="+subnetA, 400, "DependencyViolation", id)
	w.ask("ReleaseAddress&AllocationId="+address, 400, "InvalidIPAddress.InUse")
	w.ask("DetachInternetGateway&InternetGatewayId="+gateway+"&VpcId="+vpcA, 400, "DependencyViolation", "mapped public address(es)")
	association := between(w.ask("DescribeAddresses", 200), "<associationId>", "</associationId>")
	w.ask("DisassociateAddress&AssociationId="+association, 400, "AuthFailure")
	w.ask("DeleteNatGateway&NatGatewayId="+id+"&DryRun=true", 412)
	w.ask("DeleteNatGateway&NatGatewayId="+id, 200, "<natGatewayId>"+id)
	w.ask("DescribeNatGateways&NatGatewayId.1="+id, 400, "NatGatewayNotFound")
	w.ask("DeleteNatGateway&NatGatewayId="+failed, 200)
	w.ask("ReleaseAddress&AllocationId="+address, 200, "<return>true</return>")
	w.ask("DescribeAddresses&AllocationId.1="+address, 400, "InvalidAllocationID.NotFound")

	w.ask("CreateNatGateway&SubnetId="+subnetA+"&ConnectivityType=private&PrivateIpAddress=10.0.0.9", 200, "<privateIp>10.0.0.9</privateIp>", "<connectivityType>private</connectivityType>")
	for request, says := range map[string]string{
		"SubnetId=" + subnetA:                                                                "MissingParameter",
		"SubnetId=" + subnetA + "&AllocationId=" + address:                                   "InvalidAllocationID.NotFound",
		"SubnetId=" + subnetB + "&ConnectivityType=private":                                  "InvalidSubnetID.NotFound",
		"SubnetId=" + subnetA + "&ConnectivityType=private&AllocationId=" + address:          "InvalidParameterValue",
		"SubnetId=" + subnetA + "&ConnectivityType=private&PrivateIpAddress=10.0.0.9":        "InvalidIPAddress.InUse",
		"SubnetId=" + subnetA + "&ConnectivityType=private&PrivateIpAddress=10.0.0.3":        "reserved",
		"SubnetId=" + subnetA + "&ConnectivityType=private&SecondaryPrivateIpAddressCount=2": "does not support SecondaryPrivateIpAddressCount",
		"SubnetId=" + subnetA + "&ConnectivityType=both":                                     "InvalidParameterValue",
		"ConnectivityType=private":                                                           "MissingParameter",
	} {
		w.ask("CreateNatGateway&"+request, 400, says)
	}
}

// A NAT gateway takes no address that a machine or the endpoint of a cluster has.
func TestAddressOfANATGateway(t *testing.T) {
	m := aGroupsMachine(instanceA)
	m.Spec.SubnetID = subnetB
	m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.1.14"}}
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetB, vpcA, "10.0.1.0/28", "b"), m)
	cidr := netip.MustParsePrefix("10.0.1.0/28")
	w.usage = map[string][]machine.Usage{vpcA: {{
		Subnet: machine.Subnet{ID: subnetB, VPC: vpcA, CIDR: cidr, Taken: []netip.Addr{netip.MustParseAddr("10.0.1.13")}}, Machines: []string{instanceA},
		Used: []netip.Prefix{netip.MustParsePrefix("10.0.1.13/32"), netip.MustParsePrefix("10.0.1.14/32"), netip.MustParsePrefix("10.0.1.4/31")},
	}}} // pods of the machine
	for n := 12; n >= 6; n-- {
		w.ask("CreateNatGateway&ConnectivityType=private&SubnetId="+subnetB, 200, fmt.Sprintf("<privateIp>10.0.1.%d</privateIp>", n))
	}
	w.ask("DescribeSubnets", 200, "<availableIpAddressCount>0</availableIpAddressCount>")
	w.ask("CreateNatGateway&ConnectivityType=private&SubnetId="+subnetB, 400, "InsufficientFreeAddressesInSubnet")
}

func TestAddressesOfInstances(t *testing.T) {
	m := aGroupsMachine(instanceA)
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"), m)
	address := between(w.ask("AllocateAddress&TagSpecification.1.ResourceType=elastic-ip&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a", 200), "<allocationId>", "</allocationId>")
	w.ask("AllocateAddress", 200, "203.0.113.2")
	w.ask("AssociateAddress&AllocationId="+address+"&InstanceId="+instanceA, 400, "Gateway.NotAttached")
	w.withGateway(vpcA)
	association := between(w.ask("AssociateAddress&AllocationId="+address+"&InstanceId="+instanceA, 200), "<associationId>", "</associationId>")
	w.wasAsked("ec2:AssociateAddress arn:aws:ec2:eu-west-1:000000000000:elastic-ip/"+address+" aws:resourcetag/team=a ec2:allocationid="+address+" ec2:domain=vpc ec2:publicipaddress=203.0.113.1",
		"ec2:AssociateAddress arn:aws:ec2:eu-west-1:000000000000:network-interface/eni-0000000000000000a")
	w.ask("DescribeAddresses&PublicIp.1=203.0.113.1", 200, "<instanceId>"+instanceA+"</instanceId>", "<privateIpAddress>10.0.0.5</privateIpAddress>", "<associationId>"+association)
	w.ask("AssociateAddress&AllocationId="+address+"&NetworkInterfaceId=eni-0000000000000000a", 200, association)
	w.ask("AssociateAddress&AllocationId="+address+"&InstanceId="+instanceB, 400, "InvalidInstanceID.NotFound")
	w.ask("AssociateAddress&AllocationId="+address, 400, "MissingParameter")
	w.ask("DisassociateAddress&AssociationId="+association, 200)
	w.ask("DisassociateAddress&AssociationId="+association, 400, "InvalidAssociationID.NotFound")
	w.ask("AssociateAddress&AllocationId="+address+"&InstanceId="+instanceA, 200)
	w.ask("DescribeAddressesAttribute&Attribute=domain-name&AllocationId.1="+address, 200, "<addressSet></addressSet>")
	// The instance goes, and the address is free.
	m.Finalizers = nil
	if err := w.api.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: m.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	if text := w.ask("DescribeAddresses", 200, address); strings.Contains(text, "associationId") {
		t.Errorf("an address of an instance that is gone: %s", text)
	}
	w.ask("ReleaseAddress&AllocationId="+address, 200)
	w.ask("DescribeAddresses&PublicIp.1=203.0.113.1", 400, "InvalidAddress.NotFound")
	w.ask("AllocateAddress&Domain=standard", 400, "InvalidParameterValue")
	w.ask("AllocateAddress&Address=203.0.113.9", 400, "does not support Address")
	w.ask("AllocateAddress", 200, "203.0.113.1") // the first that is free
}

func TestWhatThereNeverIs(t *testing.T) {
	w := newWorld(t)
	for request, says := range map[string]string{
		"DescribeVpcEndpoints&Filter.1.Name=vpc-id&Filter.1.Value.1=" + vpcA: "<vpcEndpointSet></vpcEndpointSet>",
		"DescribePrefixLists":                              "<prefixListSet></prefixListSet>",
		"DescribeManagedPrefixLists":                       "<prefixListSet></prefixListSet>",
		"DescribePlacementGroups":                          "<placementGroupSet></placementGroupSet>",
		"DescribeCapacityReservations":                     "<capacityReservationSet></capacityReservationSet>",
		"DescribeAddressesAttribute&Attribute=domain-name": "<addressSet></addressSet>",
	} {
		w.ask(request, 200, says)
		w.ask(request+"&DryRun=true", 412)
	}
	w.ask("DescribeVpcEndpoints&VpcEndpointId.1=vpce-1", 400, "InvalidVpcEndpointId.NotFound")
	w.ask("DescribePlacementGroups&GroupName.1=a", 400, "InvalidPlacementGroup.Unknown")
}
