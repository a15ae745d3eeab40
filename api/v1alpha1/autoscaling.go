// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AutoScaling is what Auto Scaling's API keeps of the group of a node group, beside its sizes.
type AutoScaling struct {
	// Tags of the Auto Scaling group, beside those that EKS gives it.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=50
	Tags []AutoScalingTag `json:"tags,omitempty"`

	// SuspendedProcesses are kept and read back: machines are launched and terminated all the same.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	SuspendedProcesses []string `json:"suspendedProcesses,omitempty"`

	// EnabledMetrics are kept and read back.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	EnabledMetrics []string `json:"enabledMetrics,omitempty"`

	// ProtectNewMachines has machines that are launched from now on protected from scale-in.
	//
	// +optional
	ProtectNewMachines bool `json:"protectNewMachines,omitempty"`

	// Ending are machines that are ended and not replaced: the write that names one here makes the group smaller by it.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=63
	Ending []string `json:"ending,omitempty"`
}

// AutoScalingTag is a tag of an Auto Scaling group.
type AutoScalingTag struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Key string `json:"key"`

	// +optional
	Value TagValue `json:"value,omitempty"`

	// PropagateAtLaunch gives the tag to machines that are launched from now on.
	//
	// +optional
	PropagateAtLaunch bool `json:"propagateAtLaunch,omitempty"`
}

// ScalingGroup is what Auto Scaling's API keeps of the node group; never nil.
func (s NodeGroupSpec) ScalingGroup() AutoScaling {
	if s.AutoScaling == nil {
		return AutoScaling{}
	}
	return *s.AutoScaling
}
