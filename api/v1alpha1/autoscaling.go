// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// AutoScaling holds settings of a node group's Auto Scaling group, other than its sizes.
type AutoScaling struct {
	// Tags of the Auto Scaling group, in addition to those that EKS sets.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=50
	Tags []AutoScalingTag `json:"tags,omitempty"`

	// SuspendedProcesses are stored and returned. HealthCheck, ReplaceUnhealthy and Terminate keep a stopped machine from being replaced; other
	// processes have no effect: machines are still launched and terminated.
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

	// Ending lists machines to terminate without replacement. The write that adds a machine also decreases the desired size.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=63
	Ending []string `json:"ending,omitempty"`
}

// The processes of an Auto Scaling group whose suspension has an effect.
const (
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

// ScalingGroup returns the settings of the node group's Auto Scaling group; empty ones if it has none.
func (s NodeGroupSpec) ScalingGroup() AutoScaling {
	if s.AutoScaling == nil {
		return AutoScaling{}
	}
	return *s.AutoScaling
}
