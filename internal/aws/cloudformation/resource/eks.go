// SPDX-License-Identifier: Apache-2.0

package resource

// eksTypes are the types of EKS.
func eksTypes() []Type {
	return []Type{
		{
			Name:     "AWS::EKS::Cluster",
			Named:    "Name",
			Required: words("ResourcesVpcConfig RoleArn"),
			Replaces: words("BootstrapSelfManagedAddons EncryptionConfig Name OutpostConfig RoleArn AccessConfig.BootstrapClusterCreatorAdminPermissions " +
				"KubernetesNetworkConfig.IpFamily KubernetesNetworkConfig.ServiceIpv4Cidr"),
			Updates: words("AccessConfig ComputeConfig DeletionProtection Force KubernetesNetworkConfig Logging RemoteNetworkConfig ResourcesVpcConfig StorageConfig Tags UpgradePolicy " +
				"Version ZonalShiftConfig"),
			Attributes: words("Arn CertificateAuthorityData ClusterSecurityGroupId EncryptionConfigKeyArn Endpoint Id KubernetesNetworkConfig.ServiceIpv6Cidr OpenIdConnectIssuerUrl"),
			ID:         words("Name"),
			Create:     actions("eks", "CreateCluster"),
			Read:       actions("eks", "DescribeCluster"),
			Update:     actions("eks", "UpdateClusterVersion UpdateClusterConfig TagResource UntagResource"),
			Delete:     actions("eks", "DeleteCluster"),
			Once:       ByToken,
			Apart:      words("Force Logging"),
			Derived:    map[string]func(map[string]any) (any, error){"logging": logging},
		},
		{
			Name:       "AWS::EKS::Nodegroup",
			Named:      "NodegroupName",
			Required:   words("ClusterName NodeRole Subnets"),
			Replaces:   words("AmiType CapacityType ClusterName DiskSize InstanceTypes NodeRole NodegroupName RemoteAccess Subnets"),
			Updates:    words("ForceUpdateEnabled Labels LaunchTemplate NodeRepairConfig ReleaseVersion ScalingConfig Tags Taints UpdateConfig Version"),
			Attributes: words("Arn ClusterName Id NodegroupName"),
			ID:         words("ClusterName NodegroupName"),
			Separator:  "/",
			Create:     actions("eks", "CreateNodegroup"),
			Read:       actions("eks", "DescribeNodegroup"),
			Update:     actions("eks", "UpdateNodegroupVersion UpdateNodegroupConfig TagResource UntagResource"),
			Delete:     actions("eks", "DeleteNodegroup"),
			Once:       ByToken,
			Apart:      words("ForceUpdateEnabled"),
		},
		{
			Name:       "AWS::EKS::Addon",
			Required:   words("AddonName ClusterName"),
			Replaces:   words("AddonName ClusterName"),
			Updates:    words("AddonVersion ConfigurationValues PodIdentityAssociations PreserveOnDelete ResolveConflicts ServiceAccountRoleArn Tags"),
			Attributes: words("Arn"),
			ID:         words("ClusterName AddonName"),
			Create:     actions("eks", "CreateAddon"),
			Read:       actions("eks", "DescribeAddon"),
			Update:     actions("eks", "UpdateAddon TagResource UntagResource"),
			Delete:     actions("eks", "DeleteAddon"),
			Once:       ByToken,
			Apart:      words("PreserveOnDelete"),
		},
	}
}

// eksIdentityTypes are the types of EKS about who gets in and which pods have which identities and machines.
func eksIdentityTypes() []Type {
	return []Type{
		{
			Name:       "AWS::EKS::AccessEntry",
			Required:   words("ClusterName PrincipalArn"),
			Replaces:   words("ClusterName PrincipalArn Type"),
			Updates:    words("AccessPolicies KubernetesGroups Tags Username"),
			Attributes: words("AccessEntryArn"),
			ID:         words("PrincipalArn ClusterName"),
			Create:     actions("eks", "CreateAccessEntry AssociateAccessPolicy"),
			Read:       actions("eks", "DescribeAccessEntry ListAssociatedAccessPolicies"),
			Update:     actions("eks", "UpdateAccessEntry AssociateAccessPolicy DisassociateAccessPolicy TagResource UntagResource"),
			Delete:     actions("eks", "DeleteAccessEntry"),
			Once:       ByToken,
			Apart:      words("AccessPolicies"),
		},
		{
			Name:       "AWS::EKS::PodIdentityAssociation",
			Required:   words("ClusterName Namespace RoleArn ServiceAccount"),
			Replaces:   words("ClusterName Namespace ServiceAccount"),
			Updates:    words("DisableSessionTags Policy RoleArn Tags TargetRoleArn"),
			Attributes: words("AssociationArn AssociationId ExternalId"),
			ID:         words("AssociationArn"),
			Create:     actions("eks", "CreatePodIdentityAssociation"),
			Read:       actions("eks", "DescribePodIdentityAssociation"),
			Update:     actions("eks", "UpdatePodIdentityAssociation TagResource UntagResource"),
			Delete:     actions("eks", "DeletePodIdentityAssociation"),
			Once:       ByToken,
		},
		{
			Name:       "AWS::EKS::FargateProfile",
			Named:      "FargateProfileName",
			Required:   words("ClusterName PodExecutionRoleArn Selectors"),
			Replaces:   words("ClusterName FargateProfileName PodExecutionRoleArn Selectors Subnets"),
			Updates:    words("Tags"),
			Attributes: words("Arn"),
			ID:         words("ClusterName FargateProfileName"),
			Create:     actions("eks", "CreateFargateProfile"),
			Read:       actions("eks", "DescribeFargateProfile"),
			Update:     actions("eks", "TagResource UntagResource"),
			Delete:     actions("eks", "DeleteFargateProfile"),
			Once:       ByToken,
		},
	}
}
