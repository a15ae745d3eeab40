// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/terminated"
	"muster.dev/muster/internal/platform/release"
)

const nodeConfig = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: blue, apiServerEndpoint: "https://10.0.0.4:443", certificateAuthority: Cg==, cidr: 10.100.0.0/16}
`

var (
	testImage = ami.OfRelease(release.Default())
	run       = "RunInstances&ImageId=" + testImage + "&InstanceType=m5.large&MinCount=1"
)

func runWorld(t *testing.T) *world {
	t.Helper()
	blue := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue"}, Status: v1alpha1.ClusterStatus{VPCID: vpcA}}
	profile := &v1alpha1.IAMInstanceProfile{ObjectMeta: metav1.ObjectMeta{Name: "000000000000.node"}}
	profile.Spec.Name, profile.Spec.ARN, profile.Spec.RoleName = "node", "arn:aws:iam::000000000000:instance-profile/node", "NodeRole"
	role := &v1alpha1.IAMRole{ObjectMeta: metav1.ObjectMeta{Name: "000000000000.noderole"}}
	role.Spec.Name, role.Spec.ARN = "NodeRole", "arn:aws:iam::000000000000:role/of/NodeRole"
	defaults := aVPC(vpcB, "172.31.0.0/16")
	defaults.Spec.IsDefault = true
	group := func(id, vpc, name string) *v1alpha1.SecurityGroup {
		return &v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.SecurityGroupSpec{VPCID: vpc, GroupName: name, Description: name}}
	}
	template := &v1alpha1.LaunchTemplate{ObjectMeta: metav1.ObjectMeta{Name: "lt-0000000000000000a"}}
	template.Spec = v1alpha1.LaunchTemplateSpec{Name: "nodes", DefaultVersion: 1, LatestVersion: 2, Versions: []v1alpha1.LaunchTemplateVersion{
		{Number: 1, Data: runtime.RawExtension{Raw: []byte(`{"ImageId":"` + testImage + `","InstanceType":"m5.large","SecurityGroupIds":["sg-0123456789abcdef0"],"TagSpecifications":[{"ResourceType":"instance","Tags":[{"Key":"from","Value":"template"}]}]}`)}},
		{Number: 2, Data: runtime.RawExtension{Raw: []byte(`{"ImageId":"` + testImage + `","InstanceType":"m5.xlarge"}`)}},
	}}
	return newWorld(t, template, group("sg-0123456789abcdef0", vpcA, "mine"), group("sg-0000000000000000b", vpcB, "theirs"), blue, profile, role, defaults, aVPC(vpcA, "10.0.0.0/16"), aSubnet(subnetA, vpcA, "10.0.0.0/28", "eu-west-1a"),
		aSubnet("subnet-0000000000000000b", vpcB, "172.31.16.0/20", "eu-west-1b"), aSubnet("subnet-0000000000000000c", vpcB, "172.31.0.0/20", "eu-west-1a"))
}

// disk is what a request says of the root device of an instance.
func disk(size string) string {
	return "&BlockDeviceMapping.1.DeviceName=/dev/xvda&BlockDeviceMapping.1.Ebs.VolumeSize=" + size
}

func (w *world) machines() []v1alpha1.Machine {
	w.t.Helper()
	var all v1alpha1.MachineList
	if err := w.api.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	return all.Items
}

// A NodeConfig in the user data names the cluster that looks after the machine.
func TestRunInstancesOfACluster(t *testing.T) {
	w := runWorld(t)
	w.ask("CreateKeyPair&KeyName=mine", 200)
	data := url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(nodeConfig)))
	request := run + "&MaxCount=1&SubnetId=" + subnetA + "&IamInstanceProfile.Name=node&MetadataOptions.HttpPutResponseHopLimit=2&MetadataOptions.HttpTokens=required" +
		"&SecurityGroupId.1=sg-0123456789abcdef0&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=Name&TagSpecification.1.Tag.1.Value=mine&KeyName=mine"
	unescaped, err := url.QueryUnescape(data)
	if err != nil {
		t.Fatal(err)
	}
	w.ask(request+disk("30")+"&UserData="+unescaped, 200, "<reservationId>r-", "<instanceId>i-", "<code>0</code><name>pending</name>", "<instanceType>m5.large</instanceType>", "<imageId>"+testImage+"</imageId>",
		"<subnetId>"+subnetA, "<vpcId>"+vpcA, "<availabilityZone>eu-west-1a", "<key>Name</key><value>mine</value>", "<groupId>sg-0123456789abcdef0</groupId><groupName>mine</groupName>")
	all := w.machines()
	if len(all) != 1 {
		t.Fatalf("%d machines", len(all))
	}
	s := all[0].Spec
	if s.ClusterName != "blue" || s.NodeGroup != "" || string(s.UserData) != nodeConfig || s.InstanceProfile != "node" || s.Metadata().HTTPPutResponseHopLimit != 2 || s.Disk() != 30 || s.Provider != v1alpha1.ProviderLocal ||
		all[0].Labels[v1alpha1.LabelCluster] != "blue" || all[0].Finalizers[0] != v1alpha1.FinalizerMachine {
		t.Errorf("machine %+v", all[0])
	}
	w.wasAsked("ec2:RunInstances arn:aws:ec2:eu-west-1::image/"+testImage+"", "ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:instance/* aws:requesttag/name=mine",
		"ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:network-interface/*", "ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:subnet/"+subnetA,
		"ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:security-group/sg-0123456789abcdef0", "ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:key-pair/mine",
		"ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:instance/*", "iam:PassRole arn:aws:iam::000000000000:role/of/NodeRole")
	asked := strings.Join(w.gate.Asked, "\n")
	if !strings.Contains(asked, "iam:passedtoservice=ec2.amazonaws.com") || !strings.Contains(asked, "ec2:createaction=RunInstances") {
		t.Errorf("IAM is asked %s", asked)
	}
	w.gate.Denies = true
	w.ask(request, 403, "UnauthorizedOperation")
	if n := len(w.machines()); n != 1 {
		t.Errorf("%d machines after a request that was denied", n)
	}
}

// User data decides about nothing but who looks after the machine.
func TestRunInstancesOfNoCluster(t *testing.T) {
	for name, test := range map[string]struct{ data, subnet, want string }{
		"nothing":            {"", subnetA, ""},
		"a script":           {"#!/bin/sh\necho hello\n", subnetA, ""},
		"another VPC":        {nodeConfig, "subnet-0000000000000000b", ""},
		"another cluster":    {strings.ReplaceAll(nodeConfig, "blue", "green"), subnetA, ""},
		"bootstrap.sh":       {"#!/bin/bash\nset -ex\n/etc/eks/bootstrap.sh blue --b64-cluster-ca $CA\n", subnetA, "blue"},
		"no bootstrap.sh":    {"#!/bin/bash\n# /etc/eks/bootstrap.sh blue\n", subnetA, ""},
		"what is no MIME":    {"MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n", subnetA, ""},
		"the cluster itself": {nodeConfig, subnetA, "blue"},
	} {
		t.Run(name, func(t *testing.T) {
			w := runWorld(t)
			w.ask(run+"&MaxCount=1&SubnetId="+test.subnet+"&UserData="+base64.StdEncoding.EncodeToString([]byte(test.data)), 200)
			if all := w.machines(); len(all) != 1 || all[0].Spec.ClusterName != test.want {
				t.Errorf("machines %+v, want one of cluster %q", all, test.want)
			}
		})
	}
}

func TestRunInstancesChoosesASubnet(t *testing.T) {
	w := runWorld(t)
	w.ask(run+"&MaxCount=1", 200, "<subnetId>subnet-0000000000000000c</subnetId>")
	w.ask(run+"&MaxCount=1&Placement.AvailabilityZone=eu-west-1b", 200, "<subnetId>subnet-0000000000000000b</subnetId>")
	w.ask(run+"&MaxCount=1&NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.SubnetId="+subnetA+"&NetworkInterface.1.SecurityGroupId.1=sg-0123456789abcdef0", 200, "<subnetId>"+subnetA, "sg-0123456789abcdef0")
}

func TestRunInstancesOfALaunchTemplate(t *testing.T) {
	w := runWorld(t)
	request := "RunInstances&MinCount=1&MaxCount=1&LaunchTemplate.LaunchTemplateName=nodes&SubnetId=" + subnetA
	w.ask(request, 200, "<instanceType>m5.large</instanceType>", "<key>from</key><value>template</value>", "sg-0123456789abcdef0")
	w.ask(request+"&LaunchTemplate.Version=$Latest", 200, "<instanceType>m5.xlarge</instanceType>", "<groupId>"+v1alpha1.DefaultSecurityGroupID(vpcA))
	w.ask(request+"&InstanceType=t3.medium", 200, "<instanceType>t3.medium</instanceType>", "<key>from</key>")
	// Karpenter's dry run names the subnet by an interface, and leaves the groups to its template.
	byInterface := strings.Replace(request, "&SubnetId=", "&NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.SubnetId=", 1)
	w.ask(byInterface+"&LaunchTemplate.Version=1", 200, "<subnetId>"+subnetA, "<groupId>sg-0123456789abcdef0")
	w.ask(byInterface+"&LaunchTemplate.Version=1&SecurityGroupId.1=sg-0123456789abcdef0", 400, "InvalidParameterCombination")
	w.ask(request+"&LaunchTemplate.Version=7", 400, "InvalidLaunchTemplateId.VersionNotFound")
	w.wasAsked("ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:launch-template/lt-0000000000000000a", "ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:security-group/sg-0123456789abcdef0")
}

// A subnet of 16 addresses has 11 for machines.
func TestRunInstancesCounts(t *testing.T) {
	w := runWorld(t)
	answer := w.ask(run+"&MaxCount=9&SubnetId="+subnetA, 200, "<amiLaunchIndex>8</amiLaunchIndex>")
	if n := strings.Count(answer, "<reservationId>"); n != 1 || len(w.machines()) != 9 {
		t.Errorf("%d reservations, %d machines", n, len(w.machines()))
	}
	w.ask(strings.Replace(run, "MinCount=1", "MinCount=3", 1)+"&MaxCount=3&SubnetId="+subnetA, 400, "InsufficientFreeAddressesInSubnet")
	w.ask(run+"&MaxCount=3&SubnetId="+subnetA, 200)
	if n := len(w.machines()); n != 11 {
		t.Errorf("%d machines", n)
	}
}

// Where pods of the cluster have addresses of the subnet, an instance needs a range for them, too.
func TestRunInstancesWithPods(t *testing.T) {
	data := "&UserData=" + base64.StdEncoding.EncodeToString([]byte(nodeConfig))
	for pods, want := range map[string]int{"": 200, "10.244.0.0/16": 200, "10.0.0.0/16": 400} {
		w := runWorld(t)
		blue := &v1alpha1.Cluster{}
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "blue"}, blue); err != nil {
			t.Fatal(err)
		}
		blue.Status.PodCIDR = pods
		if err := w.api.Update(t.Context(), blue); err != nil {
			t.Fatal(err)
		}
		says := map[int]string{200: "<instanceId>", 400: "InsufficientFreeAddressesInSubnet"}[want]
		w.ask(run+"&MaxCount=1&SubnetId="+subnetA+data, want, says) // a /28 holds no range for 29 pods
		w.ask(run+"&MaxCount=1&SubnetId="+subnetA, 200, "<instanceId>")
	}
}

// Where the cluster has other subnets for pods, the range is of one in the instance's zone; what is full is named, and
// so is a zone without.
func TestRunInstancesWithPodSubnets(t *testing.T) {
	const podsA, podsB = "subnet-000000000000000aa", "subnet-000000000000000bb"
	w := runWorld(t)
	blue := &v1alpha1.Cluster{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "blue"}, blue); err != nil {
		t.Fatal(err)
	}
	blue.Status.PodCIDR, blue.Spec.Network.PodSubnetIDs = "10.0.0.0/16", []v1alpha1.SubnetID{podsB, podsA}
	if err := w.api.Update(t.Context(), blue); err != nil {
		t.Fatal(err)
	}
	subnet := func(id, zone, cidr string) machine.Usage {
		return machine.Usage{Subnet: machine.Subnet{ID: id, VPC: vpcA, Zone: "eu-west-1" + zone, CIDR: netip.MustParsePrefix(cidr)}}
	}
	w.usage = map[string][]machine.Usage{vpcA: {subnet(subnetA, "a", "10.0.0.0/28"), subnet(podsA, "a", "10.0.1.0/25"), subnet(podsB, "b", "10.0.2.0/24")}}
	request := run + "&SubnetId=" + subnetA + "&UserData=" + base64.StdEncoding.EncodeToString([]byte(nodeConfig))
	w.ask(strings.Replace(request, "MinCount=1", "MinCount=4", 1)+"&MaxCount=4", 400, "InsufficientFreeAddressesInSubnet", "in subnet '"+podsA+"' to satisfy")
	w.ask(request+"&MaxCount=9", 200, "<instanceId>") // three /27 of 29 pods
	if n := len(w.machines()); n != 3 {
		t.Errorf("%d machines", n)
	}
	w.ask(run+"&MaxCount=9&SubnetId="+subnetA, 200, "<instanceId>") // which run no pods; eleven addresses
	if n := len(w.machines()); n != 11 {
		t.Errorf("%d machines", n)
	}
	w.usage[vpcA] = slices.Delete(w.usage[vpcA], 1, 2)
	w.ask(request+"&MaxCount=1", 400, "InvalidParameterValue", "Cluster blue", "no subnet for pods (spec.network.podSubnetIDs) in eu-west-1a, the zone of '"+subnetA+"'")
}

// The range of a machine's pods is a prefix of its interface, if it is of a subnet of its VPC.
func TestPrefixesOfAnInstance(t *testing.T) {
	for pods, want := range map[string]string{"10.0.0.128/27": "<ipv4Prefix>10.0.0.128/27</ipv4Prefix>", "10.0.9.128/27": "<ipv4Prefix>10.0.9.128/27</ipv4Prefix>", "10.0.8.0/27": "<networkInterfaceId>", "10.244.1.0/24": "<networkInterfaceId>", "": "<networkInterfaceId>"} {
		m := aGroupsMachine(instanceA)
		m.Spec.SubnetID = subnetA
		m.Status.PodCIDR = pods
		m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
		w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"),
			readySubnet(subnetB, vpcA, "10.0.9.0/24", "a"), readySubnet("subnet-0000000000000000c", vpcB, "10.0.8.0/24", "a"), m)
		for _, action := range []string{"DescribeInstances", "DescribeNetworkInterfaces"} {
			if answer := w.ask(action, 200, want); strings.Contains(answer, "<ipv4Prefix>") != strings.HasPrefix(want, "<ipv4") {
				t.Errorf("%s with %q: %s", action, pods, answer)
			}
		}
	}
}

// A host with room for two machines of 8 GiB launches those, and says what it has left.
func TestRunInstancesOnAFiniteHost(t *testing.T) {
	w := runWorld(t)
	w.hostHas = capacity.Host{CPUs: 2, Memory: 24 << 30}
	request := run + "&SubnetId=" + subnetA
	w.ask(strings.Replace(request, "MinCount=1", "MinCount=3", 1)+"&MaxCount=3&DryRun=true", 412, "DryRunOperation") // which looks for no room, as on EC2
	w.ask(strings.Replace(request, "MinCount=1", "MinCount=3", 1)+"&MaxCount=3", 500, "<Code>InsufficientInstanceCapacity</Code>",
		"We currently do not have sufficient m5.large capacity in the Availability Zone you requested (eu-west-1a): one takes 8.0 GiB of memory and 2 vCPUs, and the host has 5.0 GiB and 28 left of the 21.0 GiB and 32 that it offers machines.")
	if n := len(w.machines()); n != 0 {
		t.Errorf("%d machines", n)
	}
	w.ask(request+"&MaxCount=3", 200, "<instanceId>")
	if n := len(w.machines()); n != 2 {
		t.Errorf("%d machines", n)
	}
	w.ask(strings.Replace(request, "m5.large", "t3.medium", 1)+"&MaxCount=1", 200, "<instanceType>t3.medium</instanceType>")
	w.ask(strings.Replace(request, "m5.large", "t3.medium", 1)+"&MaxCount=1", 500, "one takes 4.0 GiB of memory and 2 vCPUs, and the host has 1.0 GiB and 26 left")
}

func TestRunInstancesOnce(t *testing.T) {
	w := runWorld(t)
	request := run + "&MaxCount=2&ClientToken=once&SubnetId=" + subnetA
	first := w.ask(request, 200, "<clientToken>once</clientToken>")
	second := w.ask(request, 200)
	if a, b := between(first, "<reservationId>", "<"), between(second, "<reservationId>", "<"); a != b || len(w.machines()) != 2 {
		t.Errorf("reservations %s and %s, %d machines", a, b, len(w.machines()))
	}
	w.ask(strings.Replace(request, "m5.large", "m5.xlarge", 1), 400, "IdempotentParameterMismatch")

	// The service was killed between the two.
	all := w.machines()
	left := &all[0]
	left.Finalizers = nil
	if err := w.api.Update(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Delete(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	third := w.ask(request, 200)
	if a := between(third, "<reservationId>", "<"); a != between(first, "<reservationId>", "<") || strings.Count(third, "<instanceId>") != 2 || len(w.machines()) != 2 {
		t.Errorf("%s, %d machines", third, len(w.machines()))
	}

	// All are gone, and still described.
	for _, m := range w.machines() {
		if err := terminated.Remember(t.Context(), w.api, &m, time.Now()); err != nil {
			t.Fatal(err)
		}
		m.Finalizers = nil
		if err := w.api.Update(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Delete(t.Context(), &m); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	w.ask(request, 400, "IdempotentInstanceTerminated")
	w.ask("DescribeInstances", 200, "<code>48</code><name>terminated</name>", "<reason>User initiated (")
	if n := len(w.machines()); n != 0 {
		t.Errorf("%d machines", n)
	}
}

func TestRunInstancesRefuses(t *testing.T) {
	w := runWorld(t)
	base := run + "&MaxCount=1&SubnetId=" + subnetA
	for request, want := range map[string]string{
		"RunInstances&InstanceType=m5.large&MinCount=1&MaxCount=1":                  "MissingParameter",
		"RunInstances&ImageId=" + testImage + "&MinCount=1&MaxCount=1":              "m1.small",
		strings.Replace(run, testImage, "ami-0123456789abcdef0", 1) + "&MaxCount=1": "InvalidAMIID.NotFound",
		run + "&MaxCount=0":   "InvalidParameterValue",
		run + "&MaxCount=101": "<Code>ResourceCountExceeded</Code><Message>You have requested more instances (101) than Muster launches by one request: at most 100",
		run + "&MaxCount=1&SubnetId=subnet-0000000000000000f":     "InvalidSubnetID.NotFound",
		run + "&MaxCount=1&Placement.AvailabilityZone=eu-west-1z": "Invalid availability zone: [eu-west-1z]",
		base + "&Placement.AvailabilityZone=eu-west-1b":           "InvalidParameterCombination",
		base + "&UserData=!": "InvalidUserData.Malformed",
		base + "&UserData=" + base64.StdEncoding.EncodeToString(make([]byte, 16385)):  "User data is limited",
		base + "&IamInstanceProfile.Name=other":                                       "Invalid IAM Instance Profile name",
		base + "&IamInstanceProfile.Arn=arn:aws:iam::000000000000:instance-profile/x": "Invalid IAM Instance Profile ARN",
		base + "&MetadataOptions.HttpTokens=optional":                                 "HttpTokens",
		base + "&MetadataOptions.HttpPutResponseHopLimit=65":                          "from 1 to 64",
		base + disk("0"):                                                             "VolumeSize",
		base + disk("16385"):                                                         "from 1 to 16384 GiB",
		base + disk("3"):                                                             "InvalidBlockDeviceMapping",
		base + "&SecurityGroupId.1=mine":                                             "InvalidGroupId.Malformed",
		base + "&Placement.Tenancy=dedicated":                                        "Tenancy",
		base + "&HibernationOptions.Configured=true":                                 "HibernationOptions",
		base + "&SecurityGroupId.1=sg-0000000000000000e":                             "InvalidGroup.NotFound",
		base + "&SecurityGroupId.1=sg-0000000000000000b":                             "belong to different networks",
		run + "&MaxCount=1&SecurityGroup.1=other":                                    "does not exist in VPC",
		base + "&KeyName=none":                                                       "InvalidKeyPair.NotFound",
		base + "&CpuOptions.CoreCount=1":                                             "CpuOptions",
		base + "&LaunchTemplate.LaunchTemplateName=none":                             "InvalidLaunchTemplateName.NotFoundException",
		base + "&TagSpecification.1.ResourceType=vpc&TagSpecification.1.Tag.1.Key=a": "taggable resource type",
		strings.Replace(base, "m5.large", "m1.small", 1):                             "Invalid value 'm1.small' for InstanceType",
		base + "&NetworkInterface.1.DeviceIndex=0":                                   "InvalidParameterCombination",
	} {
		w.ask(request, 400, want)
	}
	w.ask(base+"&DryRun=true", 412, "DryRunOperation")
	if n := len(w.machines()); n != 0 {
		t.Errorf("%d machines", n)
	}
}
