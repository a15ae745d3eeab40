// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

const (
	subnetB = "subnet-0000000000000000b"
)

func readySubnet(id, vpc, cidr, zone string) *v1alpha1.Subnet {
	return &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Name: id, Finalizers: []string{v1alpha1.FinalizerSubnet}},
		Spec:       v1alpha1.SubnetSpec{VPCID: vpc, CIDRBlock: cidr, AvailabilityZone: testRegion + zone},
		Status:     v1alpha1.SubnetStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "NetworkReady"}}},
	}
}

func TestALifeOfAVPC(t *testing.T) {
	w := newWorld(t)
	made := w.ask("CreateVpc&CidrBlock=10.0.1.0/16&TagSpecification.1.ResourceType=vpc&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a", 200,
		"<cidrBlock>10.0.0.0/16</cidrBlock>", "<state>pending</state>", "<key>team</key><value>a</value>", "<isDefault>false</isDefault>")
	id := between(made, "<vpcId>", "</vpcId>")
	w.wasAsked("ec2:CreateVpc arn:aws:ec2:eu-west-1:000000000000:vpc/* aws:requesttag/team=a aws:tagkeys=team ec2:region=eu-west-1 ec2:tenancy=default",
		"ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:vpc/* aws:requesttag/team=a aws:tagkeys=team ec2:createaction=CreateVpc")
	w.ask("DescribeVpcs&Filter.1.Name=tag:team&Filter.1.Value.1=a", 200, id)

	w.ask("DescribeVpcAttribute&VpcId="+id+"&Attribute=enableDnsSupport", 200, "<enableDnsSupport><value>true</value></enableDnsSupport>")
	w.ask("DescribeVpcAttribute&VpcId="+id+"&Attribute=enableDnsHostnames", 200, "<enableDnsHostnames><value>false</value></enableDnsHostnames>")
	w.ask("DescribeVpcAttribute&VpcId="+id+"&Attribute=enableNetworkAddressUsageMetrics", 200, "<value>false</value>")
	w.ask("DescribeVpcAttribute&VpcId="+id+"&Attribute=colour", 400, "InvalidParameterValue")
	w.ask("ModifyVpcAttribute&VpcId="+id+"&EnableDnsHostnames.Value=true", 200, "<return>true</return>")
	w.wasAsked("ec2:ModifyVpcAttribute arn:aws:ec2:eu-west-1:000000000000:vpc/" + id + " aws:resourcetag/team=a ec2:attribute/enablednshostnames=true ec2:attribute=EnableDnsHostnames ec2:region=eu-west-1 ec2:resourcetag/team=a ec2:tenancy=default ec2:vpcid=" + id)
	w.ask("DescribeVpcAttribute&VpcId="+id+"&Attribute=enableDnsHostnames", 200, "<value>true</value>")
	w.ask("ModifyVpcAttribute&VpcId="+id+"&EnableDnsSupport.Value=true", 200)
	w.ask("ModifyVpcAttribute&VpcId="+id+"&EnableDnsSupport.Value=false", 400, "InvalidParameterValue", "name server")
	w.ask("ModifyVpcAttribute&VpcId="+id+"&EnableNetworkAddressUsageMetrics.Value=true", 400, "InvalidParameterValue")
	w.ask("ModifyVpcAttribute&VpcId="+id+"&EnableDnsSupport.Value=true&EnableDnsHostnames.Value=true", 400, "InvalidParameterCombination")
	w.ask("ModifyVpcAttribute&VpcId="+id, 400, "InvalidParameterCombination")

	subnet := between(w.ask("CreateSubnet&VpcId="+id+"&CidrBlock=10.0.1.0/24", 200), "<subnetId>", "</subnetId>")
	w.ask("DeleteVpc&VpcId="+id, 400, "<Code>DependencyViolation</Code>", "The vpc '"+id+"' has dependencies and cannot be deleted: "+subnet)
	w.ask("DeleteSubnet&SubnetId="+subnet, 200, "<return>true</return>")
	w.ask("DescribeSubnets&SubnetId.1="+subnet, 400, "InvalidSubnetID.NotFound")
	w.ask("DeleteVpc&VpcId="+id+"&DryRun=true", 412, "DryRunOperation")
	w.ask("DescribeVpcs&VpcId.1="+id, 200)
	w.ask("DeleteVpc&VpcId="+id, 200, "<return>true</return>")
	w.ask("DeleteVpc&VpcId="+id, 400, "InvalidVpcID.NotFound")
}

func TestVPCsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	for request, says := range map[string]string{
		"CidrBlock=10.0.0.0/8":                                    "<Code>InvalidVpc.Range</Code><Message>The CIDR '10.0.0.0/8' is invalid.",
		"CidrBlock=10.0.0.0/29":                                   "InvalidVpc.Range",
		"CidrBlock=127.0.0.0/16":                                  "InvalidVpc.Range",
		"CidrBlock=fd00::/64":                                     "Value (fd00::/64) for parameter cidrBlock is invalid. This is not a valid CIDR block.",
		"CidrBlock=ten":                                           "InvalidParameterValue",
		"InstanceTenancy=default":                                 "<Code>MissingParameter</Code>",
		"CidrBlock=10.0.0.0/16&InstanceTenancy=dedicated":         "InvalidParameterValue",
		"CidrBlock=10.0.0.0/16&AmazonProvidedIpv6CidrBlock=true":  "no IPv6",
		"CidrBlock=10.0.0.0/16&Ipv6Pool=p":                        "Muster does not support Ipv6Pool",
		"CidrBlock=10.0.0.0/16&TagSpecification.1.ResourceType=a": "not a valid taggable resource type",
		"CidrBlock=10.0.0.0/16&TagSpecification.1.ResourceType=vpc&TagSpecification.1.Tag.1.Key=aws:a": "reserved",
	} {
		w.ask("CreateVpc&"+request, 400, says)
	}
	w.ask("CreateVpc&CidrBlock=10.0.0.0/16&DryRun=true", 412, "DryRunOperation")
	w.gate.Denies = true
	w.ask("CreateVpc&CidrBlock=10.0.0.0/16", 403, "UnauthorizedOperation")
	var all v1alpha1.VPCList
	if err := w.api.List(t.Context(), &all); err != nil || len(all.Items) > 0 {
		t.Errorf("%v, made %d", err, len(all.Items))
	}
}

// A VPC has no address of the host's load balancers. One that is there is as it is.
func TestVPCsOverTheHostsBalancers(t *testing.T) {
	w := newWorld(t)
	w.host = []netip.Prefix{netip.MustParsePrefix("127.128.0.0/10"), netip.MustParsePrefix("172.31.255.240/28"), netip.MustParsePrefix("10.0.0.9/32")}
	w.ask("CreateVpc&CidrBlock=10.0.0.0/16", 400, "InvalidVpc.Range", "it overlaps 10.0.0.9/32, where the host has load balancers")
	w.ask("CreateDefaultVpc", 400, "InvalidVpc.Range", "172.31.0.0/16' is invalid: it overlaps 172.31.255.240/28")
	w.ask("CreateVpc&CidrBlock=10.1.0.0/16", 200)
	w.host, w.hostFails = nil, errors.New("damaged")
	w.ask("CreateVpc&CidrBlock=10.0.0.0/16", 503)
	w.hostFails = nil
	id := between(w.ask("CreateDefaultVpc", 200), "<vpcId>", "</vpcId>")
	if err := w.api.DeleteAllOf(t.Context(), &v1alpha1.Subnet{}); err != nil {
		t.Fatal(err)
	}
	w.host = []netip.Prefix{netip.MustParsePrefix("172.31.255.240/28")}
	w.ask("CreateDefaultVpc", 200, id)
}

func TestTheDefaultVPC(t *testing.T) {
	w := newWorld(t)
	w.ask("DescribeAccountAttributes", 200, "<attributeName>default-vpc</attributeName><attributeValueSet><item><attributeValue>none</attributeValue>")
	id := between(w.ask("CreateDefaultVpc", 200, "<cidrBlock>172.31.0.0/16</cidrBlock>", "<isDefault>true</isDefault>"), "<vpcId>", "</vpcId>")
	if text := w.ask("DescribeSubnets&Filter.1.Name=vpc-id&Filter.1.Value.1="+id, 200, "172.31.0.0/20", "172.31.16.0/20", "172.31.32.0/20"); strings.Count(text, "<defaultForAz>true</defaultForAz>") != 3 {
		t.Errorf("of three default subnets: %s", text)
	}
	w.ask("CreateDefaultVpc", 400, "DefaultVpcAlreadyExists")
	w.ask("DescribeAccountAttributes&AttributeName.1=default-vpc", 200, id)
	// One that was cut short is gone on with.
	if err := w.api.DeleteAllOf(t.Context(), &v1alpha1.Subnet{}); err != nil {
		t.Fatal(err)
	}
	w.ask("CreateDefaultVpc", 200, id)
	w.ask("DescribeSubnets", 200, "172.31.32.0/20")
}

func TestALifeOfASubnet(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), aVPC(vpcB, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/20", "a"))
	made := w.ask("CreateSubnet&VpcId="+vpcA+"&CidrBlock=10.0.16.0/24&AvailabilityZoneId=euw1-az2&TagSpecification.1.ResourceType=subnet&TagSpecification.1.Tag.1.Key=tier&TagSpecification.1.Tag.1.Value=b", 200,
		"<availabilityZone>eu-west-1b</availabilityZone>", "<availabilityZoneId>euw1-az2</availabilityZoneId>", "<state>pending</state>", "<availableIpAddressCount>251</availableIpAddressCount>",
		"<mapPublicIpOnLaunch>false</mapPublicIpOnLaunch>", "<hostnameType>ip-name</hostnameType>", "<key>tier</key>")
	id := between(made, "<subnetId>", "</subnetId>")
	w.wasAsked("ec2:CreateSubnet arn:aws:ec2:eu-west-1:000000000000:subnet/* aws:requesttag/tier=b aws:tagkeys=tier ec2:availabilityzone=eu-west-1b ec2:region=eu-west-1 ec2:vpc=arn:aws:ec2:eu-west-1:000000000000:vpc/"+vpcA,
		"ec2:CreateSubnet arn:aws:ec2:eu-west-1:000000000000:vpc/"+vpcA)
	w.ask("DescribeSubnets&SubnetId.1="+id, 200, "<subnetArn>arn:aws:ec2:eu-west-1:000000000000:subnet/"+id+"</subnetArn>")
	if text := w.ask("DescribeSubnets&Filter.1.Name=availability-zone&Filter.1.Value.1=eu-west-1?&Filter.2.Name=cidr-block&Filter.2.Value.1=10.0.16.*", 200, id); strings.Contains(text, subnetA) {
		t.Errorf("the filters let through %s", text)
	}
	w.ask("CreateSubnet&VpcId="+vpcA+"&CidrBlock=10.0.16.128/25", 400, "<Code>InvalidSubnet.Conflict</Code><Message>The CIDR '10.0.16.128/25' conflicts with another subnet")
	w.ask("CreateSubnet&VpcId="+vpcB+"&CidrBlock=10.0.16.128/25", 200, "<availabilityZone>eu-west-1a</availabilityZone>")
	for request, says := range map[string]string{
		"CidrBlock=10.1.0.0/24":                                                          "<Code>InvalidSubnet.Range</Code><Message>The CIDR '10.1.0.0/24' is invalid.",
		"CidrBlock=10.0.0.0/15":                                                          "InvalidSubnet.Range",
		"CidrBlock=10.0.32.0/30":                                                         "InvalidSubnet.Range",
		"AvailabilityZone=eu-west-1a":                                                    "MissingParameter",
		"CidrBlock=10.0.32.0/24&AvailabilityZone=us-east-1a":                             "Value (us-east-1a) for parameter availabilityZone is invalid. Subnets can currently only be created in the following availability zones: eu-west-1a, eu-west-1b, eu-west-1c.",
		"CidrBlock=10.0.32.0/24&AvailabilityZoneId=use1-az1":                             "parameter availabilityZoneId is invalid",
		"CidrBlock=10.0.32.0/24&Ipv6Native=true":                                         "no IPv6",
		"CidrBlock=10.0.32.0/24&OutpostArn=a":                                            "does not support OutpostArn",
		"CidrBlock=10.0.32.0/24&VpcId=vpc-0000000000000000c":                             "InvalidVpcID.NotFound",
		"CidrBlock=10.0.32.0/24&AvailabilityZone=eu-west-1a&AvailabilityZoneId=euw1-az2": "InvalidParameterCombination",
	} {
		w.ask("CreateSubnet&VpcId="+vpcA+"&"+request, 400, says)
	}
	w.ask("ModifySubnetAttribute&SubnetId="+id+"&MapPublicIpOnLaunch.Value=true", 200)
	w.ask("DescribeSubnets&Filter.1.Name=map-public-ip-on-launch&Filter.1.Value.1=true", 200, id)
	w.ask("ModifySubnetAttribute&SubnetId="+id+"&EnableDns64.Value=false", 200)
	w.ask("ModifySubnetAttribute&SubnetId="+id+"&EnableDns64.Value=true", 400, "parameter EnableDns64 is invalid")
	w.ask("ModifySubnetAttribute&SubnetId="+id+"&PrivateDnsHostnameTypeOnLaunch=ip-name", 200)
	w.ask("ModifySubnetAttribute&SubnetId="+id+"&PrivateDnsHostnameTypeOnLaunch=resource-name", 400, "InvalidParameterValue")
	w.ask("ModifySubnetAttribute&SubnetId="+id, 400, "InvalidParameterCombination")
}

// The count is of addresses that are free: machines and the endpoint of a cluster have one each, and keep the subnet;
// pods of a machine have a range.
func TestAddressesOfASubnet(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"), readySubnet(subnetB, vpcA, "10.0.1.0/24", "b"))
	w.usage = map[string][]machine.Usage{vpcA: {
		{
			Subnet: machine.Subnet{ID: subnetA, VPC: vpcA, CIDR: netip.MustParsePrefix("10.0.0.0/24"), Taken: []netip.Addr{netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("10.0.1.4")}}, Machines: []string{"i-1", "i-2"},
			Used: []netip.Prefix{netip.MustParsePrefix("10.0.0.4/31"), netip.MustParsePrefix("10.0.0.6/32"), netip.MustParsePrefix("10.0.0.64/27"), netip.MustParsePrefix("10.0.1.4/32")},
		},
	}}
	w.ask("DescribeSubnets&SubnetId.1="+subnetA, 200, "<availableIpAddressCount>216</availableIpAddressCount>")
	w.ask("DescribeSubnets&SubnetId.1="+subnetB, 200, "<availableIpAddressCount>251</availableIpAddressCount>")
	w.ask("DeleteSubnet&SubnetId="+subnetA, 400, "DependencyViolation", "i-1, i-2, the endpoint of a cluster at 10.0.0.4")
	w.ask("DeleteSubnet&SubnetId="+subnetB, 200)
	// One that is being deleted, and that something has an address of, is there for everybody; another is not.
	if err := w.api.Delete(t.Context(), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a")); err != nil {
		t.Fatal(err)
	}
	w.ask("DescribeSubnets&SubnetId.1="+subnetB, 400, "InvalidSubnetID.NotFound")
	s := &v1alpha1.Subnet{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: subnetA}, s); err != nil {
		t.Fatal(err)
	}
	s.Status.Conditions[0].Status, s.Status.Conditions[0].Reason = metav1.ConditionFalse, "InUse"
	if err := w.api.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.ask("DescribeSubnets&SubnetId.1="+subnetA, 200, "<state>available</state>")
}

// The subnet of a cluster's pods is kept by the cluster, and by the pods of machines, whose ranges count.
func TestAddressesOfASubnetForPods(t *testing.T) {
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}}
	cluster.Spec.Name, cluster.Spec.Network.PodSubnetIDs, cluster.Status.VPCID = "blue", []v1alpha1.SubnetID{subnetA}, vpcA
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"), cluster)
	usage := machine.Usage{Subnet: machine.Subnet{ID: subnetA, VPC: vpcA, CIDR: netip.MustParsePrefix("10.0.0.0/24")}, PodMachines: []string{"i-1"}, Used: []netip.Prefix{netip.MustParsePrefix("10.0.0.128/25")}}
	w.usage = map[string][]machine.Usage{vpcA: {usage}}
	w.ask("DescribeSubnets&SubnetId.1="+subnetA, 200, "<availableIpAddressCount>124</availableIpAddressCount>")
	w.ask("DeleteSubnet&SubnetId="+subnetA, 400, "DependencyViolation", "the pods of i-1, cluster blue for its pods")
	usage.PodMachines, usage.Used = nil, nil
	w.usage[vpcA][0] = usage
	w.ask("DeleteSubnet&SubnetId="+subnetA, 400, "DependencyViolation", "cluster blue for its pods")
	cluster.Status.VPCID = "" // it has another network, or none yet
	if err := w.api.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	w.ask("DeleteSubnet&SubnetId="+subnetA, 200)
}

func TestTags(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"))
	w.ask("CreateTags&ResourceId.1="+vpcA+"&ResourceId.2="+subnetA+"&Tag.1.Key=team&Tag.1.Value=a&Tag.2.Key=tier&Tag.2.Value=", 200, "<return>true</return>")
	w.wasAsked("ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:vpc/"+vpcA+" aws:requesttag/team=a aws:requesttag/tier= aws:tagkeys=team+tier ec2:region=eu-west-1 ec2:tenancy=default",
		"ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:subnet/"+subnetA)
	w.ask("DescribeTags", 200, "<key>team</key><resourceId>"+subnetA+"</resourceId><resourceType>subnet</resourceType><value>a</value>", "<resourceType>vpc</resourceType>")
	if text := w.ask("DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1="+vpcA+"&Filter.2.Name=key&Filter.2.Value.1=team", 200, "team"); strings.Contains(text, "tier") || strings.Contains(text, subnetA) {
		t.Errorf("the filters let through %s", text)
	}
	w.ask("DeleteTags&ResourceId.1="+vpcA+"&Tag.1.Key=team&Tag.1.Value=b&Tag.2.Key=tier", 200)
	if text := w.ask("DescribeVpcs", 200, "<key>team</key>"); strings.Contains(text, "tier") {
		t.Errorf("what is left: %s", text)
	}
	w.wasAsked("ec2:DeleteTags arn:aws:ec2:eu-west-1:000000000000:vpc/" + vpcA + " aws:requesttag/team=b aws:requesttag/tier= aws:resourcetag/team=a")
	w.ask("DeleteTags&ResourceId.1="+subnetA, 200)
	if text := w.ask("DescribeTags", 200); strings.Contains(text, subnetA) {
		t.Errorf("all of a subnet's were to go: %s", text)
	}
	w.ask("CreateTags&ResourceId.1="+vpcA+"&Tag.1.Key=more&Tag.1.Value=x&DryRun=true", 412, "DryRunOperation")
	w.ask("CreateTags&ResourceId.1="+vpcA+"&ResourceId.2=subnet-0000000000000000c&Tag.1.Key=more&Tag.1.Value=x", 400, "InvalidSubnetID.NotFound")
	w.ask("CreateTags&ResourceId.1=thing-1&Tag.1.Key=more&Tag.1.Value=x", 400, "InvalidID")
	w.ask("CreateTags&ResourceId.1=r-0000000000000000a&Tag.1.Key=more&Tag.1.Value=x", 400, "InvalidID")
	w.ask("CreateTags&ResourceId.1="+vpcA+"&Tag.1.Key=aws:more&Tag.1.Value=x", 400, "reserved")
	w.gate.Denies = true
	w.ask("CreateTags&ResourceId.1="+vpcA+"&Tag.1.Key=more&Tag.1.Value=x", 403, "UnauthorizedOperation")
	w.ask("DeleteTags&ResourceId.1="+vpcA, 403, "UnauthorizedOperation")
	w.gate.Denies = false
	if text := w.ask("DescribeTags", 200, "<key>team</key>"); strings.Contains(text, "more") {
		t.Errorf("a request that was refused left %s", text)
	}
}

func TestTheAccount(t *testing.T) {
	w := newWorld(t)
	if text := w.ask("DescribeRegions", 200, "<regionName>eu-west-1</regionName>", "<optInStatus>opt-in-not-required</optInStatus>"); strings.Contains(text, "us-east-1") {
		t.Errorf("one region: %s", text)
	}
	w.ask("DescribeRegions&AllRegions=true&Filter.1.Name=opt-in-status&Filter.1.Value.1=not-opted-in", 200, "<regionName>us-east-1</regionName>")
	w.ask("DescribeRegions&RegionName.1=mars-1", 400, "InvalidParameterValue")
	w.ask("DescribeRegions&DryRun=true", 412)
	w.ask("DescribeAccountAttributes&AttributeName.1=supported-platforms", 200, "<attributeValue>VPC</attributeValue>")
	w.ask("DescribeAccountAttributes&AttributeName.1=colour", 400, "InvalidParameterValue")
	options := between(w.ask("DescribeDhcpOptions", 200, "<key>domain-name</key><valueSet><item><value>eu-west-1.compute.internal</value>", "AmazonProvidedDNS"), "<dhcpOptionsId>", "</dhcpOptionsId>")
	w.ask("DescribeDhcpOptions&DhcpOptionsId.1="+options+"&Filter.1.Name=value&Filter.1.Value.1=AmazonProvidedDNS", 200, options)
	w.ask("DescribeDhcpOptions&DhcpOptionsId.1=dopt-0000000000000000a", 400, "InvalidDhcpOptionID.NotFound")
}
