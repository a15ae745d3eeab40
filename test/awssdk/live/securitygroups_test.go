// SPDX-License-Identifier: Apache-2.0

package live

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// securityGroupActions make a group, change its rules, and delete it.
func securityGroupActions() []action {
	filters := func(name, value string) []types.Filter {
		return []types.Filter{{Name: aws.String(name), Values: []string{value}}}
	}
	permission := func(cidr string) []types.IpPermission {
		return []types.IpPermission{{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(80), ToPort: aws.Int32(81), IpRanges: []types.IpRange{{CidrIp: aws.String(cidr), Description: aws.String("a rule")}}}}
	}
	id := func(w *world) *string { return aws.String(w.notes["sg"]) }
	return []action{
		{"CreateSecurityGroup", func(w *world) {
			create := func(dry bool) (*ec2.CreateSecurityGroupOutput, error) {
				return w.ec2.CreateSecurityGroup(w.ctx(), &ec2.CreateSecurityGroupInput{
					DryRun: aws.Bool(dry), GroupName: aws.String("live"), Description: aws.String("live"), VpcId: aws.String(w.notes["vpc"]),
					TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSecurityGroup, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}}},
				})
			}
			_, err := create(true)
			w.refused("DryRunOperation", err)
			out := need(create(false))
			w.has(out, "GroupId", "SecurityGroupArn", "Tags[].Key")
			w.notes["sg"] = *out.GroupId
			_, err = create(false)
			w.refused("InvalidGroup.Duplicate", err)
		}},
		{"AuthorizeSecurityGroupIngress", func(w *world) {
			in := &ec2.AuthorizeSecurityGroupIngressInput{GroupId: id(w), IpPermissions: permission("10.0.0.0/8")}
			out := need(w.ec2.AuthorizeSecurityGroupIngress(w.ctx(), in))
			w.has(out, "Return", "SecurityGroupRules[].SecurityGroupRuleId")
			w.notes["sgr"] = *out.SecurityGroupRules[0].SecurityGroupRuleId
			_, err := w.ec2.AuthorizeSecurityGroupIngress(w.ctx(), in)
			w.refused("InvalidPermission.Duplicate", err)
		}},
		{"AuthorizeSecurityGroupEgress", func(w *world) {
			out := need(w.ec2.AuthorizeSecurityGroupEgress(w.ctx(), &ec2.AuthorizeSecurityGroupEgressInput{GroupId: id(w), IpPermissions: permission("10.0.0.0/8")}))
			w.has(out, "Return", "SecurityGroupRules[].SecurityGroupRuleId")
		}},
		{"DescribeSecurityGroups", func(w *world) {
			out := need(w.ec2.DescribeSecurityGroups(w.ctx(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{*id(w)}}))
			w.has(out, "SecurityGroups[].GroupId", "SecurityGroups[].SecurityGroupArn", "SecurityGroups[].GroupName", "SecurityGroups[].Description", "SecurityGroups[].VpcId", "SecurityGroups[].OwnerId",
				"SecurityGroups[].IpPermissions[].IpProtocol", "SecurityGroups[].IpPermissions[].IpRanges[].CidrIp", "SecurityGroups[].IpPermissionsEgress[].IpProtocol", "SecurityGroups[].Tags[].Key")
			need(w.ec2.DescribeSecurityGroups(w.ctx(), &ec2.DescribeSecurityGroupsInput{Filters: filters("tag:aws:eks:cluster-name", first)}))
			_, err := w.ec2.DescribeSecurityGroups(w.ctx(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-0123456789abcdef0"}})
			w.refused("InvalidGroup.NotFound", err)
		}},
		{"ModifySecurityGroupRules", func(w *world) {
			out := need(w.ec2.ModifySecurityGroupRules(w.ctx(), &ec2.ModifySecurityGroupRulesInput{GroupId: id(w), SecurityGroupRules: []types.SecurityGroupRuleUpdate{{
				SecurityGroupRuleId: aws.String(w.notes["sgr"]),
				SecurityGroupRule:   &types.SecurityGroupRuleRequest{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(80), ToPort: aws.Int32(81), CidrIpv4: aws.String("10.0.0.0/16")},
			}}}))
			w.has(out, "Return")
		}},
		{"UpdateSecurityGroupRuleDescriptionsIngress", func(w *world) {
			out := need(w.ec2.UpdateSecurityGroupRuleDescriptionsIngress(w.ctx(), &ec2.UpdateSecurityGroupRuleDescriptionsIngressInput{
				GroupId: id(w), SecurityGroupRuleDescriptions: []types.SecurityGroupRuleDescription{{SecurityGroupRuleId: aws.String(w.notes["sgr"]), Description: aws.String("another")}},
			}))
			w.has(out, "Return")
		}},
		{"UpdateSecurityGroupRuleDescriptionsEgress", func(w *world) {
			out := need(w.ec2.UpdateSecurityGroupRuleDescriptionsEgress(w.ctx(), &ec2.UpdateSecurityGroupRuleDescriptionsEgressInput{GroupId: id(w), IpPermissions: permission("10.0.0.0/8")}))
			w.has(out, "Return")
		}},
		{"DescribeSecurityGroupRules", func(w *world) {
			out := need(w.ec2.DescribeSecurityGroupRules(w.ctx(), &ec2.DescribeSecurityGroupRulesInput{SecurityGroupRuleIds: []string{w.notes["sgr"]}}))
			w.has(out, "SecurityGroupRules[].SecurityGroupRuleArn", "SecurityGroupRules[].GroupId", "SecurityGroupRules[].GroupOwnerId", "SecurityGroupRules[].IsEgress", "SecurityGroupRules[].IpProtocol",
				"SecurityGroupRules[].FromPort", "SecurityGroupRules[].ToPort", "SecurityGroupRules[].CidrIpv4", "SecurityGroupRules[].Description")
			if r := out.SecurityGroupRules[0]; *r.CidrIpv4 != "10.0.0.0/16" {
				w.Errorf("%+v", r)
			}
			all := ec2.NewDescribeSecurityGroupRulesPaginator(w.ec2, &ec2.DescribeSecurityGroupRulesInput{Filters: filters("group-id", *id(w)), MaxResults: aws.Int32(5)})
			for all.HasMorePages() {
				need(all.NextPage(w.ctx()))
			}
		}},
		{"RevokeSecurityGroupIngress", func(w *world) {
			in := &ec2.RevokeSecurityGroupIngressInput{GroupId: id(w), SecurityGroupRuleIds: []string{w.notes["sgr"]}}
			w.has(need(w.ec2.RevokeSecurityGroupIngress(w.ctx(), in)), "Return")
			_, err := w.ec2.RevokeSecurityGroupIngress(w.ctx(), in)
			w.refused("InvalidSecurityGroupRuleId.NotFound", err)
		}},
		{"RevokeSecurityGroupEgress", func(w *world) {
			w.has(need(w.ec2.RevokeSecurityGroupEgress(w.ctx(), &ec2.RevokeSecurityGroupEgressInput{GroupId: id(w), IpPermissions: permission("10.0.0.0/8")})), "Return")
		}},
		{"DeleteSecurityGroup", func(w *world) {
			in := &ec2.DeleteSecurityGroupInput{GroupId: id(w)}
			w.has(need(w.ec2.DeleteSecurityGroup(w.ctx(), in)), "Return", "GroupId")
			_, err := w.ec2.DeleteSecurityGroup(w.ctx(), in)
			w.refused("InvalidGroup.NotFound", err)
		}},
		{"DescribeNetworkInterfaces", func(w *world) {
			out := need(w.ec2.DescribeNetworkInterfaces(w.ctx(), &ec2.DescribeNetworkInterfacesInput{Filters: filters("description", "Amazon EKS "+first)}))
			w.has(out, "NetworkInterfaces[].NetworkInterfaceId", "NetworkInterfaces[].InterfaceType", "NetworkInterfaces[].Status", "NetworkInterfaces[].MacAddress", "NetworkInterfaces[].PrivateIpAddress",
				"NetworkInterfaces[].PrivateIpAddresses[].PrivateIpAddress", "NetworkInterfaces[].SubnetId", "NetworkInterfaces[].VpcId", "NetworkInterfaces[].AvailabilityZone", "NetworkInterfaces[].Groups[].GroupId",
				"NetworkInterfaces[].Attachment.Status", "NetworkInterfaces[].OwnerId")
		}},
	}
}
