// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// service is one that has a table.
type service struct {
	name       string // as signatures name it
	client     string // the package of the SDK
	protocol   string
	operations []string // nil means all
}

// services says which operations the tables have. To add an action, add its name here and run make generate.
func services() []service {
	return []service{
		{name: "eks", client: "eks", protocol: "restjson"},
		{name: "autoscaling", client: "autoscaling", protocol: "query"},
		{name: "ec2", client: "ec2", protocol: "ec2query", operations: strings.Fields(ec2)},
		{name: "ssm", client: "ssm", protocol: "awsjson1.1", operations: strings.Fields(ssm)},
		{name: "kms", client: "kms", protocol: "awsjson1.1"},
		{name: "logs", client: "cloudwatchlogs", protocol: "awsjson1.1", operations: strings.Fields(logs)},
	}
}

func (s service) table(client *source) (string, error) {
	if strings.HasSuffix(s.protocol, "query") {
		return queryTable(client, s.name, s.protocol, s.operations)
	}
	return schemaTable(client, s.name, s.protocol, s.operations)
}

// EC2 has more than 700 operations, and SSM and CloudWatch Logs have more than a hundred each: what AWS's tools and controllers need of them
// is a part of docs/aws-actions.md.
const (
	ec2 = `
AllocateAddress AssignPrivateIpAddresses AssociateAddress AssociateDhcpOptions AssociateIamInstanceProfile AssociateRouteTable
AssociateSubnetCidrBlock AssociateVpcCidrBlock AttachInternetGateway AttachNetworkInterface AttachVolume AuthorizeSecurityGroupEgress
AuthorizeSecurityGroupIngress CreateDefaultVpc CreateDhcpOptions CreateEgressOnlyInternetGateway CreateFleet CreateFlowLogs
CreateInternetGateway CreateKeyPair CreateLaunchTemplate CreateLaunchTemplateVersion CreateNatGateway CreateNetworkAcl
CreateNetworkAclEntry CreateNetworkInterface CreateRoute CreateRouteTable CreateSecurityGroup CreateSnapshot CreateSubnet CreateTags
CreateVolume CreateVpc CreateVpcEndpoint DeleteDhcpOptions DeleteEgressOnlyInternetGateway DeleteFlowLogs DeleteInternetGateway
DeleteKeyPair DeleteLaunchTemplate DeleteLaunchTemplateVersions DeleteNatGateway DeleteNetworkAcl DeleteNetworkAclEntry
DeleteNetworkInterface DeleteRoute DeleteRouteTable DeleteSecurityGroup DeleteSnapshot DeleteSubnet DeleteTags DeleteVolume DeleteVpc
DeleteVpcEndpoints DescribeAccountAttributes DescribeAddresses DescribeAddressesAttribute DescribeAvailabilityZones
DescribeCapacityReservations DescribeDhcpOptions DescribeEgressOnlyInternetGateways DescribeFlowLogs
DescribeIamInstanceProfileAssociations DescribeImageAttribute DescribeImages DescribeInstanceAttribute
DescribeInstanceCreditSpecifications DescribeInstanceStatus DescribeInstanceTopology DescribeInstanceTypeOfferings
DescribeInstanceTypes DescribeInstances DescribeInternetGateways DescribeKeyPairs DescribeLaunchTemplateVersions
DescribeLaunchTemplates DescribeManagedPrefixLists DescribeNatGateways DescribeNetworkAcls DescribeNetworkInterfaceAttribute
DescribeNetworkInterfaces DescribePlacementGroups DescribePrefixLists DescribeRegions DescribeRouteTables
DescribeSecurityGroupRules DescribeSecurityGroups DescribeSnapshots DescribeSpotPriceHistory DescribeSubnets DescribeTags
DescribeVolumeAttribute DescribeVolumeStatus DescribeVolumes DescribeVolumesModifications DescribeVpcAttribute
DescribeVpcEndpointServices DescribeVpcEndpoints DescribeVpcs DetachInternetGateway DetachNetworkInterface DetachVolume
DisableVgwRoutePropagation DisassociateAddress DisassociateIamInstanceProfile DisassociateRouteTable DisassociateSubnetCidrBlock
DisassociateVpcCidrBlock EnableVgwRoutePropagation GetConsoleOutput GetInstanceTypesFromInstanceRequirements GetLaunchTemplateData
GetManagedPrefixListEntries GetSecurityGroupsForVpc ImportKeyPair ModifyInstanceAttribute ModifyInstanceMetadataOptions
ModifyLaunchTemplate ModifyNetworkInterfaceAttribute ModifySecurityGroupRules ModifySubnetAttribute ModifyVolume
ModifyVolumeAttribute ModifyVpcAttribute ModifyVpcEndpoint MonitorInstances RebootInstances ReleaseAddress
ReplaceIamInstanceProfileAssociation ReplaceNetworkAclAssociation ReplaceNetworkAclEntry ReplaceRoute
ReplaceRouteTableAssociation RevokeSecurityGroupEgress RevokeSecurityGroupIngress RunInstances StartInstances StopInstances
TerminateInstances UnassignPrivateIpAddresses UnmonitorInstances UpdateSecurityGroupRuleDescriptionsEgress
UpdateSecurityGroupRuleDescriptionsIngress`
	ssm = `
AddTagsToResource DeleteParameter DeleteParameters DescribeParameters GetParameter GetParameterHistory GetParameters
GetParametersByPath ListTagsForResource PutParameter RemoveTagsFromResource`
	logs = `
AssociateKmsKey CreateLogGroup CreateLogStream DeleteLogGroup DeleteLogStream DeleteRetentionPolicy DescribeLogGroups
DescribeLogStreams DescribeResourcePolicies DisassociateKmsKey FilterLogEvents GetLogEvents ListTagsForResource ListTagsLogGroup
PutLogEvents PutResourcePolicy PutRetentionPolicy TagLogGroup TagResource UntagLogGroup UntagResource`
)
