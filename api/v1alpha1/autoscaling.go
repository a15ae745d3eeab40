// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoScaling holds settings of a node group's Auto Scaling group, other than its sizes.
type AutoScaling struct {
	// Tags of the Auto Scaling group, in addition to those that EKS sets.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=50
	Tags []AutoScalingTag `json:"tags,omitempty"`

	// SuspendedProcesses of the group: Launch, Terminate, AZRebalance, HealthCheck, ReplaceUnhealthy, ScheduledActions and InstanceRefresh are
	// not carried out while they are in the list. A node group has no InstanceRefresh. AddToLoadBalancer and AlarmNotification are stored
	// and returned.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	SuspendedProcesses []string `json:"suspendedProcesses,omitempty"`

	// EnabledMetrics are stored and returned.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	EnabledMetrics []string `json:"enabledMetrics,omitempty"`

	// ProtectNewMachines protects new machines from scale-in.
	//
	// +optional
	ProtectNewMachines bool `json:"protectNewMachines,omitempty"`

	// ScheduledActions change the sizes of the group at a time.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=125
	ScheduledActions []ScheduledAction `json:"scheduledActions,omitempty"`

	// Ending lists machines of a node group to terminate without replacement. The write that adds a machine also decreases the desired size.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=63
	Ending []string `json:"ending,omitempty"`
}

// The processes of an Auto Scaling group whose suspension has an effect.
const (
	ProcessLaunch           = "Launch"
	ProcessAZRebalance      = "AZRebalance"
	ProcessScheduledActions = "ScheduledActions"
	ProcessInstanceRefresh  = "InstanceRefresh"
	ProcessHealthCheck      = "HealthCheck"
	ProcessReplaceUnhealthy = "ReplaceUnhealthy"
	ProcessTerminate        = "Terminate"
)

// Suspends reports whether one of the processes is suspended.
func (a AutoScaling) Suspends(processes ...string) bool {
	return slices.ContainsFunc(a.SuspendedProcesses, func(p string) bool { return slices.Contains(processes, p) })
}

// AutoScalingTag is a tag of an Auto Scaling group.
type AutoScalingTag struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Key string `json:"key"`

	// +optional
	Value TagValue `json:"value,omitempty"`

	// PropagateAtLaunch adds the tag to new machines.
	//
	// +optional
	PropagateAtLaunch bool `json:"propagateAtLaunch,omitempty"`
}

// ScheduledAction changes the sizes of a group, once or again and again.
type ScheduledAction struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// StartTime is when the action runs first, or from when on it recurs.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// EndTime is when the action no longer recurs.
	//
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// Recurrence is a cron expression of five fields. An action without one runs once.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Recurrence string `json:"recurrence,omitempty"`

	// TimeZone of the recurrence, by its IANA name; UTC if empty.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	TimeZone string `json:"timeZone,omitempty"`

	// +optional
	MinSize *int32 `json:"minSize,omitempty"`

	// +optional
	MaxSize *int32 `json:"maxSize,omitempty"`

	// +optional
	DesiredCapacity *int32 `json:"desiredCapacity,omitempty"`

	// Done is the time up to which the action was carried out, or for a new one the time at which it was made. The write that changes the
	// sizes changes it, too.
	Done metav1.Time `json:"done"`
}

// ScalingGroup returns the settings of the node group's Auto Scaling group; empty ones if it has none.
func (s NodeGroupSpec) ScalingGroup() AutoScaling {
	if s.AutoScaling == nil {
		return AutoScaling{}
	}
	return *s.AutoScaling
}
