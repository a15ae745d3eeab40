// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/gateway"
	"muster.dev/muster/internal/cloud/ec2/keypair"
	"muster.dev/muster/internal/cloud/ec2/routetable"
)

// refused begins the answer of a refusal with a code and the beginning of its message.
func refused(code, message string) string { return "<Code>" + code + "</Code><Message>" + message }

// The protocol refuses a request that no action sees.
func TestRequestsThatNoActionSees(t *testing.T) {
	w := newWorld(t)
	for request, says := range map[string]string{
		"":                                 refused("MissingAction", "the parameter Action is missing"),
		"CreateWorld":                      refused("InvalidAction", "the action CreateWorld is not valid for this web service"),
		"DescribeVpcs&Version=2006-01-01":  refused("NoSuchVersion", "the requested version "),
		"DescribeVpcs&Filter..Name=vpc-id": refused("MalformedQueryString", "&quot;Filter..Name&quot; is not the name of a parameter"),
		"DescribeVpcs&Colour=red":          refused("UnknownParameter", "the parameter "),
	} {
		w.ask(request, 400, says)
	}
	if len(w.gate.Asked) > 0 {
		t.Errorf("IAM is asked %s", w.gate.Asked)
	}
}

func TestMalformedIDs(t *testing.T) {
	w := newWorld(t)
	for request, want := range map[string]struct{ says, id string }{
		"ReleaseAddress&AllocationId=eipalloc-1":                 {refused("InvalidAllocationID.Malformed", "Invalid allocation ID: "), "eipalloc-1"},
		"DisassociateAddress&AssociationId=eipassoc-1":           {refused("InvalidAssociationID.NotFound", "Invalid association ID: "), "eipassoc-1"},
		"DescribeDhcpOptions&DhcpOptionsId.1=dopt-1":             {refused("InvalidDhcpOptionsId.Malformed", "Invalid dhcpOptions ID: "), "dopt-1"},
		"DescribeKeyPairs&KeyPairId.1=key-1":                     {refused("InvalidKeyPair.Format", "Invalid key pair: "), "key-1"},
		"DescribeLaunchTemplates&LaunchTemplateId.1=lt-1":        {refused("InvalidLaunchTemplateId.Malformed", "Invalid launch template ID: "), "lt-1"},
		"DeleteNetworkAcl&NetworkAclId=acl-1":                    {refused("InvalidNetworkAclId.Malformed", "Invalid networkAcl ID: "), "acl-1"},
		"DescribeNetworkInterfaces&NetworkInterfaceId.1=eni-1":   {refused("InvalidNetworkInterfaceId.Malformed", "Invalid networkInterface ID: "), "eni-1"},
		"DescribeRouteTables&RouteTableId.1=rtb-1":               {refused("InvalidRouteTableId.Malformed", "Invalid routeTable ID: "), "rtb-1"},
		"DescribeSecurityGroupRules&SecurityGroupRuleId.1=sgr-1": {refused("InvalidSecurityGroupRuleId.Malformed", "Invalid security group rule ID: "), "sgr-1"},
		"DescribeSubnets&SubnetId.1=subnet-1":                    {refused("InvalidSubnetID.Malformed", "Invalid subnet ID: "), "subnet-1"},
		"DescribeNatGateways&NatGatewayId.1=nat-1":               {refused("NatGatewayMalformed", "Invalid Nat Gateway ID: "), "nat-1"},
	} {
		w.ask(request, 400, want.says, want.id, "hexadecimal digits)")
	}
}

func TestMissingResources(t *testing.T) {
	w := newWorld(t)
	for request, says := range map[string]string{
		"DescribeCapacityReservations&CapacityReservationId.1=cr-0123456789abcdef0": refused("InvalidCapacityReservationId.NotFound", "The capacity reservation 'cr-0123456789abcdef0' does not exist"),
		"DeleteNetworkAcl&NetworkAclId=acl-0123456789abcdef0":                       refused("InvalidNetworkAclID.NotFound", "The networkAcl ID 'acl-0123456789abcdef0' does not exist"),
		"DescribeNetworkInterfaces&NetworkInterfaceId.1=eni-0123456789abcdef0":      refused("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID 'eni-0123456789abcdef0' does not exist"),
		"DescribePrefixLists&PrefixListId.1=pl-0123456789abcdef0":                   refused("InvalidPrefixListId.NotFound", "The prefix list ID 'pl-0123456789abcdef0' does not exist"),
		"DescribeManagedPrefixLists&PrefixListId.1=pl-0123456789abcdef0":            refused("InvalidPrefixListID.NotFound", "The prefix list ID 'pl-0123456789abcdef0' does not exist"),
		"CreateSecurityGroup&GroupName=web&GroupDescription=web":                    refused("VPCIdNotSpecified", "No default VPC for this user"),
		run + "&MaxCount=1": refused("VPCIdNotSpecified", "No default VPC with a subnet for this user"),
	} {
		w.ask(request, 400, says)
	}
}

func TestInstancesThatCannotBe(t *testing.T) {
	w := runWorld(t)
	groups := ""
	for n := range 17 {
		groups += fmt.Sprintf("&SecurityGroupId.%d=sg-%017x", n+1, n)
	}
	for request, says := range map[string]string{
		"&SubnetId=" + subnetA + "&SecurityGroupId.1=sg-0000000000000000b": refused("InvalidParameter", "Security group sg-0000000000000000b and subnet "+subnetA+" belong to different networks."),
		"&PrivateIpAddress=172.31.0.9":                                     refused("Unsupported", "Muster chooses the addresses of machines: leave PrivateIpAddress out"),
		groups:                                                             refused("SecurityGroupsPerInterfaceLimitExceeded", "There are 17 security groups: an interface has at most 16"),
	} {
		w.ask(run+"&MaxCount=1"+request, 400, says)
	}
	if n := len(w.machines()); n != 0 {
		t.Errorf("%d machines", n)
	}
}

func TestAttributesThatStay(t *testing.T) {
	w := instancesWorld(t)
	for attribute, why := range map[string]string{
		"InstanceInitiatedShutdownBehavior.Value=stop":           "Muster's machines boot again when they shut themselves down",
		"Attribute=instanceInitiatedShutdownBehavior&Value=stop": "Muster's machines boot again when they shut themselves down",
		"InstanceType.Value=m5.xlarge":                           "Muster's machines keep such attributes, stopped or not",
		"Attribute=userData&Value=" + "bm9uZQ==":                 "Muster's machines keep such attributes, stopped or not",
	} {
		w.ask("ModifyInstanceAttribute&InstanceId="+instanceA+"&"+attribute, 400, refused("UnsupportedOperation", why))
	}
}

// A pending instance has no address to associate. Terraform tries again by this code and the words "pending instance".
func TestAddressOfAPendingInstance(t *testing.T) {
	w := instancesWorld(t)
	w.withGateway(vpcA)
	address := between(w.ask("AllocateAddress", 200), "<allocationId>", "</allocationId>")
	w.ask("AssociateAddress&AllocationId="+address+"&InstanceId="+instanceB, 400, refused("InvalidInstanceID", "The pending instance '"+instanceB+"' is not in a valid state for this operation"))
}

func TestFiltersAreLimited(t *testing.T) {
	w := newWorld(t)
	filters, values := "DescribeVpcs", "DescribeVpcs&Filter.1.Name=vpc-id"
	for n := range 51 {
		filters += fmt.Sprintf("&Filter.%d.Name=vpc-id&Filter.%d.Value.1=a", n+1, n+1)
	}
	for n := range 201 {
		values += fmt.Sprintf("&Filter.1.Value.%d=a", n+1)
	}
	w.ask(filters, 400, refused("FilterLimitExceeded", "The request has 51 filters: there may be 50"))
	w.ask(values, 400, refused("FilterLimitExceeded", "The filters have more than 200 values"))
}

func TestTagsAreLimited(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"))
	tags := ""
	for n := range 50 {
		tags += fmt.Sprintf("&Tag.%d.Key=k%d", n+1, n)
	}
	w.ask("CreateTags&ResourceId.1="+vpcA+tags, 200)
	w.ask("CreateTags&ResourceId.1="+vpcA+"&Tag.1.Key=k0&Tag.1.Value=other", 200)
	w.ask("CreateTags&ResourceId.1="+vpcA+"&Tag.1.Key=more", 400, refused("TagLimitExceeded", "The resource would have 51 tags: there may be 50"))
	w.ask("CreateTags&ResourceId.1="+vpcA+tags+"&Tag.51.Key=more", 400, refused("TagLimitExceeded", "The resource would have 51 tags"))
}

// fill keeps records of one type, as many as there may be.
func fill[T any](w *world, kind ec2id.Kind, of string, all []T) {
	w.t.Helper()
	for n := range all {
		r := &ec2resource.Record[T]{ID: fmt.Sprintf("%s%017x", kind.Prefix, n+1), Data: all[n]}
		if err := (awsrecord.Kind[T]{Type: of}).Create(w.t.Context(), w.api, r); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestAddressesAreLimited(t *testing.T) {
	w := newWorld(t)
	var all []gateway.KeptAddress
	for _, cidr := range gateway.PublicRanges {
		for ip := cidr.Addr(); cidr.Contains(ip); ip = ip.Next() {
			all = append(all, gateway.KeptAddress{PublicIP: ip.String()})
		}
	}
	free := all[1].PublicIP
	all = append(all[:1], all[2:]...)
	fill(w, ec2id.Address, "elastic-ip", all)
	w.ask("AllocateAddress", 200, "<publicIp>"+free+"</publicIp>")
	w.ask("AllocateAddress", 400, refused("AddressLimitExceeded", "The maximum number of addresses has been reached: 768."))
}

func TestKeyPairsAreLimited(t *testing.T) {
	w := newWorld(t)
	var all []keypair.KeptKeyPair
	for n := range keypair.MaxKeyPairs - 1 {
		all = append(all, keypair.KeptKeyPair{Name: fmt.Sprint("key ", n), Type: "ed25519"})
	}
	fill(w, ec2id.KeyPair, keypair.KeyPairResource, all)
	w.ask("CreateKeyPair&KeyName=last&KeyType=ed25519", 200)
	w.ask("CreateKeyPair&KeyName=more&KeyType=ed25519", 400, refused("KeyPairLimitExceeded", "There are 1000 key pairs: Muster keeps at most 1000"))
}

func TestRoutesAreLimited(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"))
	gateway := w.withGateway(vpcA)
	full := routetable.KeptTable{VPC: vpcA}
	for ip := netip.MustParseAddr("192.0.2.0"); len(full.Routes) < routetable.MostRoutes-1; ip = ip.Next() {
		full.Routes = append(full.Routes, routetable.KeptRoute{Destination: ip.String() + "/32", Gateway: gateway})
	}
	fill(w, ec2id.RouteTable, "route-table", []routetable.KeptTable{full})
	create := "CreateRoute&RouteTableId=rtb-00000000000000001&GatewayId=" + gateway + "&DestinationCidrBlock="
	w.ask(create+"0.0.0.0/0", 200)
	w.ask(create+"203.0.113.0/24", 400, refused("RouteLimitExceeded", "The maximum number of routes has been reached: 1000."))
}

// Clients try again when the management plane refuses a change or does not answer.
func TestTheManagementPlaneRefuses(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"))
	w.deleteFails = apierrors.NewConflict(schema.GroupResource{Resource: "vpcs"}, vpcA, errors.New("the UID differs"))
	answers := []string{w.ask("DeleteVpc&VpcId="+vpcA, 400, refused("IncorrectState", "The resource was changed by somebody else meanwhile: try again"))}
	w.deleteFails = nil
	w.listFails = errors.New("dial unix: the UID differs")
	answers = append(answers, w.ask("DescribeVpcs", 503, refused("Unavailable", "The management plane does not answer: try again")))
	if text := strings.Join(answers, "\n"); strings.Contains(text, "the UID differs") {
		t.Errorf("the cause is told to the caller: %s", text)
	}
	w.listFails = nil
	w.ask("DescribeVpcs", 200, vpcA)
	var all v1alpha1.VPCList
	if err := w.api.List(t.Context(), &all); err != nil || len(all.Items) != 1 || !all.Items[0].DeletionTimestamp.IsZero() {
		t.Errorf("%v, VPCs %+v", err, all.Items)
	}
}

// For an association that is missing, malformed or not, IAM is asked about all that the request names beside it, so
// that nobody without rights learns what there is.
func TestAssociationsThatAreMissing(t *testing.T) {
	const prefix = "arn:aws:ec2:eu-west-1:000000000000:"
	for _, id := range []string{"x", "aclassoc-0000000000000000c", "rtbassoc-0000000000000000c"} {
		w := newWorld(t)
		w.ask("ReplaceNetworkAclAssociation&AssociationId="+id+"&NetworkAclId=acl-0000000000000000c", 400)
		w.wasAsked("ec2:ReplaceNetworkAclAssociation "+prefix+"network-acl/acl-0000000000000000c", "ec2:ReplaceNetworkAclAssociation "+prefix+"subnet/*")
		w.ask("ReplaceRouteTableAssociation&AssociationId="+id+"&RouteTableId=rtb-0000000000000000c", 400)
		w.wasAsked("ec2:ReplaceRouteTableAssociation "+prefix+"route-table/rtb-0000000000000000c", "ec2:ReplaceRouteTableAssociation "+prefix+"route-table/*")
		w.ask("ReplaceNetworkAclAssociation&AssociationId="+id+"&NetworkAclId=", 400, refused("MissingParameter", "The request must contain the parameter networkAclId"))
	}
}
