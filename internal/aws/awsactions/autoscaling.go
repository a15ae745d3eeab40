// SPDX-License-Identifier: Apache-2.0

package awsactions

func autoscalingActions() []Action {
	return []Action{
		{Name: "CreateAutoScalingGroup", Mark: Refused, Reason: "Muster has a group for each managed node group and no others: use CreateNodegroup and DeleteNodegroup"},
		{Name: "DescribeAutoScalingGroups", Mark: Real},
		{Name: "UpdateAutoScalingGroup", Mark: Real, Resources: []string{"autoScalingGroup"}, Keys: []string{"autoscaling:ImageId", "autoscaling:InstanceTypes", "autoscaling:LaunchTemplateVersionSpecified", "autoscaling:MaxSize", "autoscaling:MinSize", "autoscaling:VPCZoneIdentifiers"}},
		{Name: "DeleteAutoScalingGroup", Mark: Refused, Reason: "Muster has a group for each managed node group and no others: use CreateNodegroup and DeleteNodegroup"},
		{Name: "DescribeAutoScalingInstances", Mark: Real},
		{Name: "DescribeScalingActivities", Mark: Real},
		{Name: "SetDesiredCapacity", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "TerminateInstanceInAutoScalingGroup", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "CreateOrUpdateTags", Mark: Real, Resources: []string{"autoScalingGroup"}, Keys: tagged()},
		{Name: "DeleteTags", Mark: Real, Resources: []string{"autoScalingGroup"}, Keys: []string{"aws:TagKeys"}},
		{Name: "DescribeTags", Mark: Real},
		{Name: "SetInstanceProtection", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "SuspendProcesses", Mark: Record, Resources: []string{"autoScalingGroup"}},
		{Name: "ResumeProcesses", Mark: Record, Resources: []string{"autoScalingGroup"}},
		{Name: "EnableMetricsCollection", Mark: Record, Resources: []string{"autoScalingGroup"}},
		{Name: "DisableMetricsCollection", Mark: Record, Resources: []string{"autoScalingGroup"}},
		{Name: "DescribeLaunchConfigurations", Mark: Record},
		{Name: "DescribeLifecycleHooks", Mark: Record},
		{Name: "DescribePolicies", Mark: Record},
		{Name: "DescribeInstanceRefreshes", Mark: Record},
		{Name: "CreateLaunchConfiguration", Mark: Refused, Reason: "Muster has launch templates and no launch configurations"},
		{Name: "DeleteLaunchConfiguration", Mark: Refused, Reason: "Muster has launch templates and no launch configurations"},
		{Name: "StartInstanceRefresh", Mark: Refused, Reason: "Muster replaces the machines of a managed node group, by UpdateNodegroupVersion; it refreshes no other groups yet"},
		{Name: "CancelInstanceRefresh", Mark: Refused, Reason: "Muster replaces the machines of a managed node group, by UpdateNodegroupVersion; it refreshes no other groups yet"},
		{Name: "PutLifecycleHook", Mark: Refused, Reason: "Muster has no lifecycle hooks: nodes are drained before their machines go"},
		{Name: "DeleteLifecycleHook", Mark: Refused, Reason: "Muster has no lifecycle hooks: nodes are drained before their machines go"},
		{Name: "CompleteLifecycleAction", Mark: Refused, Reason: "Muster has no lifecycle hooks: nodes are drained before their machines go"},
		{Name: "RecordLifecycleActionHeartbeat", Mark: Refused, Reason: "Muster has no lifecycle hooks: nodes are drained before their machines go"},
		{Name: "PutScalingPolicy", Mark: Refused, Reason: "Muster has no metrics to scale by: use the Cluster Autoscaler"},
		{Name: "DeletePolicy", Mark: Refused, Reason: "Muster has no metrics to scale by: use the Cluster Autoscaler"},
		{Name: "PutScheduledUpdateGroupAction", Mark: Refused, Reason: "Muster has no scheduled actions"},
		{Name: "PutWarmPool", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "DescribeWarmPool", Mark: Real},
		{Name: "DeleteWarmPool", Mark: Real, Resources: []string{"autoScalingGroup"}},
		{Name: "AttachTrafficSources", Mark: Refused, Reason: "Muster has no load balancers in Auto Scaling groups yet"},
		{Name: "DetachTrafficSources", Mark: Refused, Reason: "Muster has no load balancers in Auto Scaling groups yet"},
		{Name: "AttachLoadBalancerTargetGroups", Mark: Refused, Reason: "Muster has no load balancers in Auto Scaling groups yet"},
		{Name: "DetachLoadBalancerTargetGroups", Mark: Refused, Reason: "Muster has no load balancers in Auto Scaling groups yet"},
		{Name: "AttachInstances", Mark: Refused, Reason: "Muster's groups take only machines that they launched"},
		{Name: "DetachInstances", Mark: Refused, Reason: "Muster's groups keep the machines that they launched: terminate one with TerminateInstanceInAutoScalingGroup"},
	}
}

func autoscalingResources() []Resource {
	return []Resource{
		{Type: "autoScalingGroup", ARN: "arn:${Partition}:autoscaling:${Region}:${Account}:autoScalingGroup:${GroupId}:autoScalingGroupName/${GroupFriendlyName}"},
	}
}
