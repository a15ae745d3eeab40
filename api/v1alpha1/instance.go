// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// AnnotationLaunchCause on a Machine is why its group made it, in the words of DescribeScalingActivities.
	AnnotationLaunchCause = "muster.dev/launch-cause"
	// AnnotationTerminationCause on a Machine is why it is terminated.
	AnnotationTerminationCause = "muster.dev/termination-cause"
)

// AutoScalingGroupName is the name of the Auto Scaling group of a node group, in the form of EKS's.
func AutoScalingGroupName(nodeGroup string, uid types.UID) string {
	return "eks-" + nodeGroup + "-" + string(uid)
}

// AWSTags are all tags of the machine's instance: its own, and those that EKS and Auto Scaling give an instance of a node group.
func (m *Machine) AWSTags() map[string]string {
	tags := map[string]string{}
	if cluster, group := m.Spec.ClusterName, m.Spec.NodeGroup; group != "" {
		tags["eks:cluster-name"] = cluster
		tags["eks:nodegroup-name"] = group
		tags["kubernetes.io/cluster/"+cluster] = "owned"
		tags["k8s.io/cluster-autoscaler/enabled"] = "true"
		tags["k8s.io/cluster-autoscaler/"+cluster] = "owned"
	}
	for key, value := range m.Spec.Tags {
		tags[key] = string(value)
	}
	if m.Spec.NodeGroup != "" && m.Spec.NodeGroupUID != "" {
		tags["aws:autoscaling:groupName"] = AutoScalingGroupName(m.Spec.NodeGroup, m.Spec.NodeGroupUID)
	}
	return tags
}

// LaunchedAt is when the instance was launched, or asked for as long as it is not.
func (m *Machine) LaunchedAt() time.Time {
	for _, record := range m.Status.Join {
		if record.Step == StepLaunched {
			return record.Time.Time
		}
	}
	return m.CreationTimestamp.Time
}
