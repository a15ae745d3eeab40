// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// AnnotationLaunchCause on a Machine is the reason for its launch, in the form of DescribeScalingActivities.
	AnnotationLaunchCause = "muster.dev/launch-cause"
	// AnnotationTerminationCause on a Machine is the reason for its termination.
	AnnotationTerminationCause = "muster.dev/termination-cause"
	// AnnotationSpare on a Machine of a node group says that it was launched to make the zones of the group even. It is removed when another
	// machine has ended for it.
	AnnotationSpare = "muster.dev/spare"
	// AnnotationFleet on a Machine is the id of the fleet of EC2 that it was launched for, such as
	// fleet-73fbd2ce-aa30-494c-8788-1cee4e4b2a07.
	AnnotationFleet = "muster.dev/fleet"
)

// Reservation is a request of RunInstances.
type Reservation struct {
	// ID of the request, shared by all of its machines.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^r-[0-9a-f]{8,17}$`
	ID string `json:"id"`

	// Index of the machine within the request.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index,omitempty"`
}

// AutoScalingGroupName is the name of the Auto Scaling group of a node group, in the form of EKS's.
func AutoScalingGroupName(nodeGroup string, uid types.UID) string {
	return "eks-" + nodeGroup + "-" + string(uid)
}

// MarketType says how an instance is bought, in EC2's words.
//
// +kubebuilder:validation:Enum=on-demand;spot
type MarketType string

// The market types.
const (
	MarketOnDemand MarketType = "on-demand"
	MarketSpot     MarketType = "spot"
)

// AWSTags are all tags of the machine's instance: its own, and those that EKS and Auto Scaling give an instance of a group.
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
	if fleet := m.Annotations[AnnotationFleet]; fleet != "" {
		tags["aws:ec2:fleet-id"] = fleet
	}
	if m.Spec.NodeGroup != "" && m.Spec.NodeGroupUID != "" {
		tags["aws:autoscaling:groupName"] = AutoScalingGroupName(m.Spec.NodeGroup, m.Spec.NodeGroupUID)
	}
	if m.Spec.ScalingGroup != nil {
		tags["aws:autoscaling:groupName"] = m.Spec.ScalingGroup.Name
	}
	return tags
}

// StartedAt returns the time of the machine's last start, a reboot not counted: EC2's launch time.
func (m *Machine) StartedAt() time.Time {
	if m.Status.StartedAt != nil {
		return m.Status.StartedAt.Time
	}
	return m.LaunchedAt()
}

// LaunchedAt returns the time of the launch, or until then the time at which the machine was requested.
func (m *Machine) LaunchedAt() time.Time {
	for _, record := range m.Status.Join {
		if record.Step == StepLaunched {
			return record.Time.Time
		}
	}
	return m.CreationTimestamp.Time
}

// Type returns the instance type of the machine, or "" if none was chosen.
func (s MachineSpec) Type() string {
	if s.InstanceType == "" && s.LaunchTemplate != nil {
		return s.LaunchTemplate.InstanceType
	}
	return s.InstanceType
}

// Metadata returns the options of the machine's instance metadata service.
func (s MachineSpec) Metadata() MetadataOptions {
	switch {
	case s.MetadataOptions != nil:
		return *s.MetadataOptions
	case s.LaunchTemplate != nil:
		return s.LaunchTemplate.MetadataOptions
	}
	return MetadataOptions{}
}

// Disk returns the size of the machine's disk in GiB that was asked for; 0 if nobody asked.
func (s MachineSpec) Disk() int32 {
	if s.DiskSize == 0 && s.LaunchTemplate != nil {
		return s.LaunchTemplate.DiskSize
	}
	return s.DiskSize
}
