// SPDX-License-Identifier: Apache-2.0

package resource

// computeTypes are the types that launch instances.
func computeTypes() []Type {
	return []Type{
		{
			Name:       "AWS::EC2::LaunchTemplate",
			Named:      "LaunchTemplateName",
			Required:   words("LaunchTemplateData"),
			Replaces:   words("LaunchTemplateName"),
			Updates:    words("LaunchTemplateData TagSpecifications VersionDescription"),
			Attributes: words("DefaultVersionNumber LatestVersionNumber LaunchTemplateId"),
			ID:         words("LaunchTemplateId"),
			Create:     actions("ec2", "CreateLaunchTemplate"),
			Read:       actions("ec2", "DescribeLaunchTemplates"),
			Update:     actions("ec2", "CreateLaunchTemplateVersion ModifyLaunchTemplate CreateTags DeleteTags"),
			Delete:     actions("ec2", "DeleteLaunchTemplate"),
			Once:       ByToken, TagType: "launch-template",
		},
		{
			Name:     "AWS::AutoScaling::AutoScalingGroup",
			Named:    "AutoScalingGroupName",
			Required: words("MaxSize MinSize"),
			Replaces: words("AutoScalingGroupName InstanceId"),
			Updates: words("AvailabilityZoneDistribution AvailabilityZoneImpairmentPolicy AvailabilityZones CapacityRebalance CapacityReservationSpecification Context Cooldown DefaultInstanceWarmup DesiredCapacity DesiredCapacityType HealthCheckGracePeriod HealthCheckType " +
				"InstanceMaintenancePolicy LaunchConfigurationName LaunchTemplate LifecycleHookSpecificationList LoadBalancerNames MaxInstanceLifetime MaxSize MetricsCollection MinSize " +
				"MixedInstancesPolicy NewInstancesProtectedFromScaleIn NotificationConfiguration NotificationConfigurations PlacementGroup ServiceLinkedRoleARN SkipZonalShiftValidation Tags TargetGroupARNs TerminationPolicies " +
				"TrafficSources VPCZoneIdentifier"),
			ID:     words("AutoScalingGroupName"),
			Create: actions("autoscaling", "CreateAutoScalingGroup"),
			Read:   actions("autoscaling", "DescribeAutoScalingGroups"),
			Update: actions("autoscaling", "UpdateAutoScalingGroup StartInstanceRefresh DescribeInstanceRefreshes PutLifecycleHook DeleteLifecycleHook CreateOrUpdateTags DeleteTags"),
			Delete: actions("autoscaling", "DeleteAutoScalingGroup"),
			Once:   ByName,
			Names:  map[string]string{"Cooldown": "DefaultCooldown"},
			Apart:  words("MetricsCollection NotificationConfiguration NotificationConfigurations"),
		},
	}
}
