// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// service is one that has a table.
type service struct {
	name       string // as signatures name it
	client     string // the package of the SDK
	protocol   string
	operations []string          // nil means all
	identity   bool              // STS or IAM, see awsshape.Service
	signed     string            // the name in signatures, if that is another
	policies   string            // the prefix of actions in policies, if that is another
	beyond     map[string]string // structure → text that AWS answers in it, and that its model does not have
}

// services says which operations the tables have. To add an action, add its name here and run make generate.
func services() []service {
	return []service{
		{name: "eks", client: "eks", protocol: "restjson"},
		{name: "arc-zonal-shift", client: "arczonalshift", protocol: "restjson"},
		{name: "autoscaling", client: "autoscaling", protocol: "query"},
		{name: "cloudformation", client: "cloudformation", protocol: "query", operations: strings.Fields(cloudformation)},
		{name: "ec2", client: "ec2", protocol: "ec2query", operations: strings.Fields(ec2)},
		{name: "ssm", client: "ssm", protocol: "awsjson1.1", operations: strings.Fields(ssm)},
		{name: "kms", client: "kms", protocol: "awsjson1.1"},
		{name: "ecr", client: "ecr", protocol: "awsjson1.1", operations: strings.Fields(ecr)},
		{name: "logs", client: "cloudwatchlogs", protocol: "awsjson1.1", operations: strings.Fields(logs)},
		{name: "sqs", client: "sqs", protocol: "awsjson1.0"},
		{name: "events", client: "eventbridge", protocol: "awsjson1.1", operations: strings.Fields(events)},
		{name: "pricing", client: "pricing", protocol: "awsjson1.1"},
		{name: "tagging", client: "resourcegroupstaggingapi", protocol: "awsjson1.1", policies: "tag"},
		{name: "elasticloadbalancing", client: "elasticloadbalancing", protocol: "query"},
		{name: "elasticloadbalancingv2", client: "elasticloadbalancingv2", protocol: "query", signed: "elasticloadbalancing", policies: "elasticloadbalancing"},
		{name: "sts", client: "sts", protocol: "query", operations: strings.Fields(sts), identity: true},
		{name: "iam", client: "iam", protocol: "query", operations: strings.Fields(iam), identity: true, beyond: map[string]string{"ListAccessKeysOutput": "UserName"}},
	}
}

// words are those of the service's other names, for the end of its line.
func (s service) words() string {
	var words string
	if s.signed != "" {
		words += " signed=" + s.signed
	}
	if s.policies != "" {
		words += " policies=" + s.policies
	}
	return words
}

func (s service) table(client *source) (string, error) {
	if strings.HasSuffix(s.protocol, "query") {
		return queryTable(client, s)
	}
	return schemaTable(client, s)
}

// EC2 has more than 700 operations, and IAM, SSM, CloudFormation, CloudWatch Logs and EventBridge have about a hundred each: the tables have
// what docs/aws-actions.md has, and of EC2 the operations of volumes.
const (
	ec2 = `
AllocateAddress AssignPrivateNatGatewayAddress AssociateAddress AssociateDhcpOptions AssociateNatGatewayAddress
AssociateRouteTable AssociateSubnetCidrBlock AssociateVpcCidrBlock AttachInternetGateway AttachVolume
AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CancelSpotInstanceRequests CopyImage CreateDefaultSubnet
CreateDefaultVpc CreateDhcpOptions CreateEgressOnlyInternetGateway CreateFleet CreateFlowLogs CreateInternetGateway
CreateKeyPair CreateLaunchTemplate CreateLaunchTemplateVersion CreateNatGateway CreateNetworkAcl CreateNetworkAclEntry
CreateNetworkInterface CreatePlacementGroup CreateRoute CreateRouteTable CreateSecurityGroup CreateSnapshot CreateSubnet
CreateTags CreateVolume CreateVpc CreateVpcEndpoint CreateVpnGateway DeleteDhcpOptions DeleteEgressOnlyInternetGateway
DeleteInternetGateway DeleteKeyPair DeleteLaunchTemplate DeleteLaunchTemplateVersions DeleteNatGateway DeleteNetworkAcl
DeleteNetworkAclEntry DeleteNetworkInterface DeleteRoute DeleteRouteTable DeleteSecurityGroup DeleteSnapshot DeleteSubnet
DeleteTags DeleteVolume DeleteVpc DeregisterImage DescribeAccountAttributes DescribeAddresses DescribeAddressesAttribute
DescribeAvailabilityZones DescribeCapacityReservations DescribeDhcpOptions DescribeEgressOnlyInternetGateways DescribeImages
DescribeInstanceAttribute DescribeInstanceStatus DescribeInstanceTopology DescribeInstanceTypeOfferings DescribeInstanceTypes
DescribeInstances DescribeInternetGateways DescribeKeyPairs DescribeLaunchTemplateVersions DescribeLaunchTemplates
DescribeManagedPrefixLists DescribeNatGateways DescribeNetworkAcls DescribeNetworkInterfaces DescribePlacementGroups
DescribePrefixLists DescribeRegions DescribeRouteTables DescribeSecurityGroupRules DescribeSecurityGroups DescribeSnapshots
DescribeSpotInstanceRequests DescribeSpotPriceHistory DescribeSubnets DescribeTags DescribeVolumeAttribute DescribeVolumeStatus
DescribeVolumes DescribeVolumesModifications DescribeVpcAttribute DescribeVpcEndpoints DescribeVpcs DetachInternetGateway
DetachNetworkInterface DetachVolume DisableImageDeprecation DisableVgwRoutePropagation DisassociateAddress
DisassociateNatGatewayAddress DisassociateRouteTable DisassociateSubnetCidrBlock DisassociateVpcCidrBlock
EnableImageDeprecation EnableVgwRoutePropagation GetInstanceTypesFromInstanceRequirements GetLaunchTemplateData ImportKeyPair
ModifyAddressAttribute ModifyInstanceAttribute ModifyLaunchTemplate ModifySecurityGroupRules ModifySubnetAttribute ModifyVolume
ModifyVolumeAttribute ModifyVpcAttribute ModifyVpcTenancy RebootInstances ReleaseAddress ReplaceNetworkAclAssociation
ReplaceNetworkAclEntry ReplaceRoute ReplaceRouteTableAssociation RequestSpotInstances ResetAddressAttribute RevokeSecurityGroupEgress
RevokeSecurityGroupIngress RunInstances StartInstances StopInstances TerminateInstances UnassignPrivateNatGatewayAddress
UpdateSecurityGroupRuleDescriptionsEgress UpdateSecurityGroupRuleDescriptionsIngress`
	cloudformation = `
CancelUpdateStack ContinueUpdateRollback CreateChangeSet CreateStack DeleteChangeSet DeleteStack DescribeChangeSet DescribeStackDriftDetectionStatus
DescribeStackEvents DescribeStackResource DescribeStackResourceDrifts DescribeStackResources DescribeStacks DetectStackDrift
DetectStackResourceDrift EstimateTemplateCost ExecuteChangeSet GetStackPolicy GetTemplate GetTemplateSummary ListChangeSets ListExports
ListImports ListStackResources ListStacks RollbackStack SetStackPolicy SignalResource UpdateStack UpdateTerminationProtection
ValidateTemplate`
	ssm = `
DeleteParameter DescribeParameters GetParameter GetParameters GetParametersByPath PutParameter`
	ecr = `
BatchCheckLayerAvailability BatchDeleteImage BatchGetImage CompleteLayerUpload CreateRepository DeleteLifecyclePolicy DeleteRepository
DeleteRepositoryPolicy DescribeImages DescribeRegistry DescribeRepositories GetAuthorizationToken GetDownloadUrlForLayer GetLifecyclePolicy
GetRepositoryPolicy InitiateLayerUpload ListImages ListTagsForResource PutImage PutImageScanningConfiguration PutImageTagMutability
PutLifecyclePolicy SetRepositoryPolicy TagResource UntagResource UploadLayerPart`
	logs = `
AssociateKmsKey CreateLogGroup CreateLogStream DeleteLogGroup DeleteLogStream DeleteRetentionPolicy DescribeLogGroups DescribeLogStreams
DescribeQueries DisassociateKmsKey FilterLogEvents GetLogEvents GetQueryResults ListTagsForResource ListTagsLogGroup PutLogEvents
PutLogGroupDeletionProtection PutRetentionPolicy StartQuery StopQuery TagLogGroup TagResource UntagLogGroup UntagResource`
	events = `
CreateEventBus DeleteEventBus DeleteRule DescribeEventBus DescribeRule DisableRule EnableRule ListEventBuses ListRules ListTagsForResource
ListTargetsByRule PutEvents PutPermission PutRule PutTargets RemoveTargets TagResource TestEventPattern UntagResource`
	sts = `
AssumeRole AssumeRoleWithSAML AssumeRoleWithWebIdentity DecodeAuthorizationMessage GetAccessKeyInfo GetCallerIdentity GetFederationToken
GetSessionToken`
	iam = `
AddClientIDToOpenIDConnectProvider AddRoleToInstanceProfile AttachRolePolicy AttachUserPolicy CreateAccessKey CreateAccountAlias
CreateInstanceProfile CreateOpenIDConnectProvider CreatePolicy CreatePolicyVersion CreateRole CreateServiceLinkedRole CreateUser
DeleteAccessKey DeleteAccountAlias DeleteInstanceProfile DeleteLoginProfile DeleteOpenIDConnectProvider DeletePolicy DeletePolicyVersion
DeleteRole DeleteRolePermissionsBoundary DeleteRolePolicy DeleteServiceLinkedRole DeleteUser DeleteUserPermissionsBoundary DeleteUserPolicy
DetachRolePolicy DetachUserPolicy GetAccessKeyLastUsed GetAccountSummary GetContextKeysForCustomPolicy GetContextKeysForPrincipalPolicy
GetInstanceProfile GetLoginProfile GetOpenIDConnectProvider GetPolicy GetPolicyVersion GetRole GetRolePolicy
GetServiceLinkedRoleDeletionStatus GetUser GetUserPolicy ListAccessKeys ListAccountAliases ListAttachedRolePolicies ListAttachedUserPolicies
ListEntitiesForPolicy ListGroupsForUser ListInstanceProfileTags ListInstanceProfiles ListInstanceProfilesForRole ListMFADevices
ListOpenIDConnectProviderTags ListOpenIDConnectProviders ListPolicies ListPolicyTags ListPolicyVersions ListRolePolicies ListRoleTags
ListRoles ListSSHPublicKeys ListServiceSpecificCredentials ListSigningCertificates ListUserPolicies ListUserTags ListUsers
ListVirtualMFADevices PutRolePermissionsBoundary PutRolePolicy PutUserPermissionsBoundary PutUserPolicy
RemoveClientIDFromOpenIDConnectProvider RemoveRoleFromInstanceProfile SetDefaultPolicyVersion SimulateCustomPolicy SimulatePrincipalPolicy
TagInstanceProfile TagOpenIDConnectProvider TagPolicy TagRole TagUser UntagInstanceProfile UntagOpenIDConnectProvider UntagPolicy UntagRole
UntagUser UpdateAccessKey UpdateAssumeRolePolicy UpdateOpenIDConnectProviderThumbprint UpdateRole UpdateRoleDescription UpdateUser`
)
