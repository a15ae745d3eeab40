// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/ec2/ec2securitygroup"
)

const (
	webGroup     = "sg-0000000000000000a"
	otherGroup   = "sg-0000000000000000b"
	clusterGroup = "sg-0000000000000000c"
	groupSubnet  = "subnet-0000000000000000d"
	groupMachine = "i-0000000000000000e"
)

func aGroup(id, vpc, name string, rules ...v1alpha1.SecurityGroupRule) *v1alpha1.SecurityGroup {
	return &v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.SecurityGroupSpec{VPCID: vpc, GroupName: name, Description: name, Rules: rules}}
}

func defaultGroup(vpc string) *v1alpha1.SecurityGroup {
	id := v1alpha1.DefaultSecurityGroupID(vpc)
	return aGroup(id, vpc, "default", v1alpha1.FirstRules(id)...)
}

// rules are those of a group, as "Ingress tcp 80-80 10.0.0.0/16 (from the VPC)".
func (w *world) rules(id string) []string {
	w.t.Helper()
	var g v1alpha1.SecurityGroup
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Name: id}, &g); err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, r := range g.Spec.Rules {
		text := string(r.Direction) + " " + r.Protocol
		if r.FromPort != nil {
			text += fmt.Sprintf(" %d-%d", *r.FromPort, *r.ToPort)
		}
		text += " " + r.CIDRIPv4 + r.CIDRIPv6 + r.GroupID
		if r.Description != "" {
			text += " (" + r.Description + ")"
		}
		all = append(all, text)
	}
	return all
}

func (w *world) hasRules(id string, want ...string) {
	w.t.Helper()
	if got := w.rules(id); strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("%s has %q, want %q", id, got, want)
	}
}

func TestCreateAndDeleteSecurityGroup(t *testing.T) {
	standard := aVPC(vpcA, "10.0.0.0/16")
	standard.Spec.IsDefault = true
	w := newWorld(t, standard, aVPC(vpcB, "10.1.0.0/16"), defaultGroup(vpcA), defaultGroup(vpcB))
	text := w.ask("CreateSecurityGroup&GroupName=web&GroupDescription=web servers&VpcId="+vpcB+"&TagSpecification.1.ResourceType=security-group&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a", 200,
		"<groupId>sg-", "<securityGroupArn>arn:aws:ec2:eu-west-1:"+account+":security-group/sg-", "<key>team</key>")
	id := between(text, "<groupId>", "</groupId>")
	w.wasAsked("ec2:CreateSecurityGroup arn:aws:ec2:eu-west-1:"+account+":security-group/* aws:requesttag/team=a aws:tagkeys=team ec2:region=eu-west-1 ec2:vpc=arn:aws:ec2:eu-west-1:"+account+":vpc/"+vpcB,
		"ec2:CreateSecurityGroup arn:aws:ec2:eu-west-1:"+account+":vpc/"+vpcB, "ec2:CreateTags arn:aws:ec2:eu-west-1:"+account+":security-group/*")
	w.hasRules(id, "Egress -1 0.0.0.0/0")
	w.ask("CreateSecurityGroup&GroupName=web&GroupDescription=again&VpcId="+vpcB, 400, "InvalidGroup.Duplicate", "The security group 'web' already exists for VPC '"+vpcB+"'")
	w.ask("CreateSecurityGroup&GroupName=web&GroupDescription=in the default VPC", 200, "<groupId>sg-")
	w.ask("CreateSecurityGroup&GroupName=default&GroupDescription=x&VpcId="+vpcB, 400, "Cannot use reserved security group name: default")
	w.ask("CreateSecurityGroup&GroupName=sg-1&GroupDescription=x&VpcId="+vpcB, 400, "for parameter GroupName is invalid")
	w.ask("CreateSecurityGroup&GroupName=a&GroupDescription=é&VpcId="+vpcB, 400, "for parameter GroupDescription is invalid")
	w.ask("CreateSecurityGroup&GroupName=a&GroupDescription=x&VpcId=vpc-0000000000000000f", 400, "InvalidVpcID.NotFound")
	w.ask("CreateSecurityGroup&GroupName=dry&GroupDescription=x&DryRun=true&VpcId="+vpcB, 412, "DryRunOperation")

	w.ask("DescribeSecurityGroups&GroupId.1="+id, 200, "<groupName>web</groupName>", "<groupDescription>web servers</groupDescription>", "<vpcId>"+vpcB+"</vpcId>", "<ipPermissionsEgress><item><ipProtocol>-1</ipProtocol>", "<cidrIp>0.0.0.0/0</cidrIp>", "<value>a</value>")
	if text := w.ask("DescribeSecurityGroups&Filter.1.Name=group-name&Filter.1.Value.1=default&Filter.2.Name=vpc-id&Filter.2.Value.1="+vpcB, 200, v1alpha1.DefaultSecurityGroupID(vpcB)); strings.Contains(text, vpcA) || strings.Contains(text, id) {
		t.Error(text)
	}
	if text := w.ask("DescribeSecurityGroups&GroupName.1=default", 200, v1alpha1.DefaultSecurityGroupID(vpcA)); strings.Contains(text, vpcB) {
		t.Error(text)
	}
	w.ask("DescribeSecurityGroups&GroupName.1=nobody", 400, "InvalidGroup.NotFound", "does not exist in default VPC '"+vpcA+"'")
	w.ask("DescribeSecurityGroups&GroupId.1=sg-0000000000000000f", 400, "InvalidGroup.NotFound", "The security group 'sg-0000000000000000f' does not exist")
	w.ask("CreateTags&ResourceId.1="+id+"&Tag.1.Key=Name&Tag.1.Value=web", 200)
	w.ask("DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1="+id, 200, "<resourceType>security-group</resourceType>", "<key>Name</key>")
	w.ask("DeleteVpc&VpcId="+vpcB, 400, "DependencyViolation", id)

	w.ask("DeleteSecurityGroup&GroupId="+v1alpha1.DefaultSecurityGroupID(vpcB), 400, "CannotDelete", "cannot be deleted by a user")
	w.ask("DeleteSecurityGroup&DryRun=true&GroupId="+id, 412, "DryRunOperation")
	w.ask("DeleteSecurityGroup&GroupId="+id, 200, "<return>true</return>", "<groupId>"+id+"</groupId>")
	w.ask("DeleteSecurityGroup&GroupId="+id, 400, "InvalidGroup.NotFound")
	w.gate.Denies = true
	w.ask("CreateSecurityGroup&GroupName=b&GroupDescription=x&VpcId="+vpcB, 403, "UnauthorizedOperation")
}

func TestRulesOfSecurityGroups(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), aVPC(vpcB, "10.1.0.0/16"), aGroup(webGroup, vpcA, "web"), aGroup(otherGroup, vpcB, "other"))
	in := "AuthorizeSecurityGroupIngress&GroupId=" + webGroup + "&IpPermissions.1."
	text := w.ask(in+"IpProtocol=tcp&IpPermissions.1.FromPort=80&IpPermissions.1.ToPort=80&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.7/16&IpPermissions.1.IpRanges.1.Description=from the VPC&IpPermissions.1.Groups.1.GroupId="+webGroup+
		"&TagSpecification.1.ResourceType=security-group-rule&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b", 200, "<return>true</return>", "<securityGroupRuleId>sgr-", "<cidrIpv4>10.0.0.0/16</cidrIpv4>", "<isEgress>false</isEgress>", "<referencedGroupInfo><groupId>"+webGroup)
	rule := between(text, "<securityGroupRuleId>", "</securityGroupRuleId>")
	w.wasAsked("ec2:AuthorizeSecurityGroupIngress arn:aws:ec2:eu-west-1:"+account+":security-group/"+webGroup+" ec2:region=eu-west-1 ec2:securitygroupid="+webGroup, "ec2:AuthorizeSecurityGroupIngress arn:aws:ec2:eu-west-1:"+account+":security-group-rule/* aws:requesttag/a=b")
	w.hasRules(webGroup, "Ingress tcp 80-80 10.0.0.0/16 (from the VPC)", "Ingress tcp 80-80 "+webGroup)
	w.ask(in+"IpProtocol=6&IpPermissions.1.FromPort=80&IpPermissions.1.ToPort=80&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16", 400, "InvalidPermission.Duplicate", "peer: 10.0.0.0/16, TCP, from port: 80, to port: 80, ALLOW")
	w.ask("AuthorizeSecurityGroupEgress&GroupId="+webGroup+"&IpPermissions.1.IpProtocol=-1&IpPermissions.1.FromPort=0&IpPermissions.1.ToPort=0&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0/0&IpPermissions.1.Ipv6Ranges.1.CidrIpv6=::/0", 200, "<isEgress>true</isEgress>", "<fromPort>-1</fromPort>")
	w.ask("AuthorizeSecurityGroupIngress&GroupId="+webGroup+"&IpProtocol=icmp&FromPort=8&ToPort=-1&CidrIp=10.0.0.0/8", 200)
	for parameters, want := range map[string]string{
		"IpProtocol=tcp&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16":                                                       "Must specify both from and to ports",
		"IpProtocol=tcp&IpPermissions.1.FromPort=81&IpPermissions.1.ToPort=80&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16": "Invalid TCP/UDP port range (81:80)",
		"IpProtocol=gre&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16":                                                       "Unknown protocol",
		"IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0":                                                           "CIDR block 10.0.0.0 is malformed",
		"IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=::/0":                                                               "is malformed",
		"IpProtocol=-1": "MissingParameter",
		"IpProtocol=-1&IpPermissions.1.Groups.1.GroupId=" + clusterGroup:                                                                           "InvalidGroup.NotFound",
		"IpProtocol=-1&IpPermissions.1.Groups.1.GroupId=" + otherGroup:                                                                             "belong to different networks",
		"IpProtocol=-1&IpPermissions.1.Groups.1.GroupId=" + webGroup + "&IpPermissions.1.Groups.1.UserId=1":                                        "Muster has one account",
		"IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16&IpPermissions.2.IpProtocol=all&IpPermissions.2.IpRanges.1.CidrIp=10.0.0.0/16": "must not appear multiple times",
		"IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16&IpPermissions.1.IpRanges.1.Description=é":                                     "Invalid rule description",
		"IpProtocol=-1&IpPermissions.1.PrefixListIds.1.PrefixListId=pl-1":                                                                          "refixList",
	} {
		w.ask(in+parameters, 400, want)
	}
	w.ask(in+"IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16&DryRun=true", 412, "DryRunOperation")
	all := []string{"Ingress tcp 80-80 10.0.0.0/16 (from the VPC)", "Ingress tcp 80-80 " + webGroup, "Egress -1 0.0.0.0/0", "Egress -1 ::/0", "Ingress icmp 8--1 10.0.0.0/8"}
	w.hasRules(webGroup, all...)

	w.ask("DescribeSecurityGroups&Filter.1.Name=ip-permission.cidr&Filter.1.Value.1=10.0.0.0/16", 200, webGroup)
	if text := w.ask("DescribeSecurityGroups&Filter.1.Name=egress.ip-permission.to-port&Filter.1.Value.1=80", 200); strings.Contains(text, webGroup) {
		t.Error(text)
	}
	w.ask("DescribeSecurityGroupRules&Filter.1.Name=group-id&Filter.1.Value.1="+webGroup, 200, rule, "<cidrIpv6>::/0</cidrIpv6>", "<description>from the VPC</description>", "<securityGroupRuleArn>arn:aws:ec2:eu-west-1:"+account+":security-group-rule/sgr-")
	if text := w.ask("DescribeSecurityGroupRules&SecurityGroupRuleId.1="+rule, 200, "<key>a</key>"); strings.Count(text, "<securityGroupRuleId>") != 1 {
		t.Error(text)
	}
	w.ask("DescribeSecurityGroupRules&SecurityGroupRuleId.1=sgr-0000000000000000f", 400, "InvalidSecurityGroupRuleId.NotFound")
	w.ask("CreateTags&ResourceId.1="+rule+"&Tag.1.Key=c&Tag.1.Value=d", 200)
	w.ask("DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1="+rule, 200, "<resourceType>security-group-rule</resourceType>", "<key>c</key>")

	modify := "ModifySecurityGroupRules&GroupId=" + webGroup + "&SecurityGroupRule.1.SecurityGroupRuleId=" + rule + "&SecurityGroupRule.1.SecurityGroupRule."
	w.ask(modify+"IpProtocol=udp&SecurityGroupRule.1.SecurityGroupRule.FromPort=53&SecurityGroupRule.1.SecurityGroupRule.ToPort=53&SecurityGroupRule.1.SecurityGroupRule.CidrIpv4=10.0.0.0/24", 200, "<return>true</return>")
	w.ask(modify+"IpProtocol=tcp&SecurityGroupRule.1.SecurityGroupRule.FromPort=80&SecurityGroupRule.1.SecurityGroupRule.ToPort=80&SecurityGroupRule.1.SecurityGroupRule.ReferencedGroupId="+webGroup, 400, "InvalidPermission.Duplicate")
	w.ask(modify+"IpProtocol=-1&SecurityGroupRule.1.SecurityGroupRule.CidrIpv4=10.0.0.0/24&SecurityGroupRule.1.SecurityGroupRule.CidrIpv6=::/0", 400, "InvalidParameterCombination")
	all[0] = "Ingress udp 53-53 10.0.0.0/24"
	w.hasRules(webGroup, all...)
	w.ask("UpdateSecurityGroupRuleDescriptionsIngress&GroupId="+webGroup+"&SecurityGroupRuleDescription.1.SecurityGroupRuleId="+rule+"&SecurityGroupRuleDescription.1.Description=names", 200, "<return>true</return>")
	w.ask("UpdateSecurityGroupRuleDescriptionsEgress&GroupId="+webGroup+"&IpPermissions.1.IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0/0&IpPermissions.1.IpRanges.1.Description=all", 200)
	w.ask("UpdateSecurityGroupRuleDescriptionsEgress&GroupId="+webGroup+"&SecurityGroupRuleDescription.1.SecurityGroupRuleId="+rule, 400, "InvalidSecurityGroupRuleId.NotFound")
	w.ask("UpdateSecurityGroupRuleDescriptionsEgress&GroupId="+webGroup+"&IpPermissions.1.IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/8", 400, "InvalidPermission.NotFound")
	all[0], all[2] = "Ingress udp 53-53 10.0.0.0/24 (names)", "Egress -1 0.0.0.0/0 (all)"
	w.hasRules(webGroup, all...)

	w.ask("RevokeSecurityGroupIngress&GroupId="+webGroup+"&SecurityGroupRuleId.1="+rule+"&DryRun=true", 412, "DryRunOperation")
	w.ask("RevokeSecurityGroupEgress&GroupId="+webGroup+"&SecurityGroupRuleId.1="+rule, 400, "InvalidSecurityGroupRuleId.NotFound")
	w.ask("RevokeSecurityGroupIngress&GroupId="+webGroup+"&SecurityGroupRuleId.1="+rule, 200, "<return>true</return>", "<revokedSecurityGroupRuleSet><item>", "<securityGroupRuleId>"+rule)
	w.ask("RevokeSecurityGroupIngress&GroupId="+webGroup+"&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=80&IpPermissions.1.ToPort=81&IpPermissions.1.Groups.1.GroupId="+webGroup, 400, "InvalidPermission.NotFound", "The specified rule does not exist in this security group.")
	w.ask("RevokeSecurityGroupIngress&GroupId="+webGroup+"&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=80&IpPermissions.1.ToPort=80&IpPermissions.1.Groups.1.GroupId="+webGroup, 200, "<return>true</return>")
	w.ask("RevokeSecurityGroupEgress&GroupId="+webGroup+"&IpPermissions.1.IpProtocol=-1&IpPermissions.1.Ipv6Ranges.1.CidrIpv6=::/0&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0/0", 200)
	w.hasRules(webGroup, all[4])
	before := w.rules(webGroup)
	w.gate.Denies = true
	w.ask(in+"IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16", 403, "UnauthorizedOperation")
	w.hasRules(webGroup, before...)
}

func TestRulesOfAGroupAreBounded(t *testing.T) {
	var rules []v1alpha1.SecurityGroupRule
	for i := range ec2securitygroup.MostRules {
		rules = append(rules, v1alpha1.SecurityGroupRule{ID: fmt.Sprintf("sgr-%017d", i), Direction: v1alpha1.RuleIngress, Protocol: "tcp", FromPort: new(int32(i)), ToPort: new(int32(i)), CIDRIPv4: "10.0.0.0/8"})
	}
	standard := aVPC(vpcA, "10.0.0.0/16")
	standard.Spec.IsDefault = true
	w := newWorld(t, standard, aGroup(webGroup, vpcA, "web", rules...))
	w.ask("AuthorizeSecurityGroupIngress&GroupId="+webGroup+"&IpProtocol=-1&CidrIp=10.0.0.0/8", 400, "RulesPerSecurityGroupLimitExceeded")
	w.ask("AuthorizeSecurityGroupEgress&GroupId="+webGroup+"&IpProtocol=-1&CidrIp=10.0.0.0/8", 200)
	w.ask("RevokeSecurityGroupIngress&GroupName=web&IpProtocol=tcp&FromPort=3&ToPort=3&CidrIp=10.0.0.0/8", 200, "<return>true</return>", webGroup)
	w.ask("AuthorizeSecurityGroupIngress&GroupName=web&IpProtocol=tcp&FromPort=3&ToPort=3&CidrIp=10.0.0.0/8", 200, "<groupId>"+webGroup)
	w.ask("AuthorizeSecurityGroupIngress&GroupName=nobody&IpProtocol=tcp&FromPort=3&ToPort=3&CidrIp=10.0.0.0/8", 400, "InvalidGroup.NotFound")
	w.ask("AuthorizeSecurityGroupIngress&IpProtocol=tcp&FromPort=3&ToPort=3&CidrIp=10.0.0.0/8", 400, "MissingParameter")
	// Of a group of the default VPC, what it has not is told and no error.
	w.ask("RevokeSecurityGroupEgress&GroupId="+webGroup+"&IpProtocol=-1&CidrIp=10.0.0.0/9", 200, "<return>true</return>", "<unknownIpPermissionSet><item><ipProtocol>-1</ipProtocol>", "<cidrIp>10.0.0.0/9</cidrIp>")
}

func TestWhoIsInAGroup(t *testing.T) {
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: groupMachine}, Spec: v1alpha1.MachineSpec{ClusterName: "blue", NodeGroup: "default", SubnetID: groupSubnet},
		Status: v1alpha1.MachineStatus{NodeName: "ip-10-0-0-5", Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}},
	}
	alone := machine.DeepCopy()
	alone.Name, alone.Spec = "i-0000000000000000f", v1alpha1.MachineSpec{SubnetID: groupSubnet, SecurityGroupIDs: []string{webGroup}}
	cluster := &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "blue", Namespace: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue", SecurityGroupIDs: []string{otherGroup}},
		Status: v1alpha1.ClusterStatus{VPCID: vpcA, ClusterSecurityGroupID: clusterGroup, EndpointAddresses: []string{"10.0.0.4"}},
	}
	own := aGroup(clusterGroup, vpcA, "eks-cluster-sg-blue-1")
	own.Spec.ClusterName = "blue"
	unused := aGroup("sg-0000000000000000d", vpcA, "unused", v1alpha1.SecurityGroupRule{ID: "sgr-0000000000000000a", Direction: v1alpha1.RuleIngress, Protocol: "-1", GroupID: "sg-0000000000000000e"})
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), machine, alone, cluster, own, unused, aGroup("sg-0000000000000000e", vpcA, "named"), aGroup(webGroup, vpcA, "web"), aGroup(otherGroup, vpcA, "other"),
		&v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: groupSubnet}, Spec: v1alpha1.SubnetSpec{VPCID: vpcA, CIDRBlock: "10.0.0.0/24", AvailabilityZone: "eu-west-1a"}})
	w.ask("DescribeInstances&InstanceId.1="+groupMachine, 200, "<groupSet><item><groupId>"+clusterGroup+"</groupId><groupName>eks-cluster-sg-blue-1</groupName>")
	w.ask("DescribeNetworkInterfaces&Filter.1.Name=group-id&Filter.1.Value.1="+clusterGroup, 200, "<networkInterfaceId>eni-0000000000000000e</networkInterfaceId>", "<instanceId>"+groupMachine+"</instanceId>", "<subnetId>"+groupSubnet+"</subnetId>",
		"<macAddress>0a:6d:0a:00:00:05</macAddress>", "<privateIpAddress>10.0.0.4</privateIpAddress>", "<description>Amazon EKS blue</description>", "<instanceOwnerId>amazon-eks</instanceOwnerId>", "<requesterManaged>true</requesterManaged>", "<availabilityZone>eu-west-1a</availabilityZone>")
	if text := w.ask("DescribeNetworkInterfaces&Filter.1.Name=attachment.instance-id&Filter.1.Value.1=i-0000000000000000f", 200, webGroup); strings.Contains(text, groupMachine) {
		t.Error(text)
	}
	w.ask("DescribeSecurityGroups&GroupId.1="+clusterGroup, 200, "<key>aws:eks:cluster-name</key><value>blue</value>")
	w.ask("DescribeSecurityGroups&Filter.1.Name=tag:aws:eks:cluster-name&Filter.1.Value.1=blue", 200, clusterGroup)
	w.ask("DeleteTags&ResourceId.1="+clusterGroup+"&Tag.1.Key=aws:eks:cluster-name", 400, "reserved")
	for id, what := range map[string]string{webGroup: "eni-0000000000000000f", otherGroup: "eni-", clusterGroup: "cluster blue", "sg-0000000000000000e": "sg-0000000000000000d"} {
		w.ask("DeleteSecurityGroup&GroupId="+id, 400, "DependencyViolation", "resource "+id+" has a dependent object", what)
	}
	w.ask("DeleteSecurityGroup&GroupId=sg-0000000000000000d", 200)
	w.ask("ModifyInstanceAttribute&InstanceId=i-0000000000000000f&GroupId.1=sg-0000000000000000f", 400, "InvalidGroup.NotFound")
}
