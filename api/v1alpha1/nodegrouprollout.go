// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationCordoned is on a Node that a rollout or a repair has cordoned, so that its end uncordons no other.
const AnnotationCordoned = "muster.dev/cordoned"

// NodeGroupRollout is a request to replace the machines of a node group.
type NodeGroupRollout struct {
	// ID of the rollout. A new id starts a new rollout.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// Force terminates a machine even if its pods cannot be evicted in time. Without it, the rollout fails and the machine is uncordoned.
	//
	// +optional
	Force bool `json:"force,omitempty"`

	// Stopped ends the rollout and leaves the remaining machines running.
	//
	// +optional
	Stopped bool `json:"stopped,omitempty"`

	// KeepCurrent leaves machines running that are of the node group's version and launch template already.
	//
	// +optional
	KeepCurrent bool `json:"keepCurrent,omitempty"`

	// Before is what the node group was of before the rollout. An Update sets it, and one with undo goes back to it.
	//
	// +optional
	Before *NodeGroupBefore `json:"before,omitempty"`
}

// NodeGroupBefore is what new machines of a node group were of before a rollout.
type NodeGroupBefore struct {
	// Version is the minor version of Kubernetes.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^1\.[0-9]{1,6}$`
	Version string `json:"version,omitempty"`

	// LaunchTemplate is the configuration of the launch.
	//
	// +optional
	LaunchTemplate *NodeGroupLaunchTemplate `json:"launchTemplate,omitempty"`
}

// NodeGroupRolloutStatus is the progress of a rollout.
type NodeGroupRolloutStatus struct {
	// ID of the rollout.
	ID string `json:"id"`

	// Phase is EKS's phase of the update after the first, in which the node group is changed: ScaleUp makes additional machines, Upgrade replaces
	// machines, and ScaleDown is the end.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`

	// Total is the number of machines that were to be replaced when the rollout began.
	// +optional
	Total int32 `json:"total,omitempty"`

	// Updated is the number of new machines that are Ready.
	// +optional
	Updated int32 `json:"updated,omitempty"`

	// Outdated is the number of machines still to be replaced.
	// +optional
	Outdated int32 `json:"outdated"`

	// Draining are the machines being drained or about to be terminated.
	// +optional
	// +listType=set
	Draining []string `json:"drainingMachines,omitempty"`

	// StepTime is the time of the rollout's last step.
	// +optional
	StepTime metav1.Time `json:"stepTime,omitzero"`

	// Code is EKS's error code if the rollout has failed: PodEvictionFailure, NodeCreationFailure or InsufficientFreeAddresses. A failed rollout
	// leaves the remaining machines running.
	// +optional
	Code string `json:"code,omitempty"`

	// Message explains the failure.
	// +optional
	Message string `json:"message,omitempty"`

	// Returned says that the group has had its size again since the rollout failed or was stopped: its additional machines are gone. Before that
	// no machine that the rollout made is protected from scale-in.
	// +optional
	Returned bool `json:"returned,omitempty"`
}

// RolloutPhase is a phase of a rollout.
//
// +kubebuilder:validation:Enum=ScaleUp;Upgrade;ScaleDown
type RolloutPhase string

// The phases of a rollout.
const (
	RolloutScaleUp   RolloutPhase = "ScaleUp"
	RolloutUpgrade   RolloutPhase = "Upgrade"
	RolloutScaleDown RolloutPhase = "ScaleDown"
)

// UpdateRollout replaces the machines of a node group. The id of the rollout is the name of the update.
//
// +kubebuilder:validation:XValidation:rule="!has(self.undo) || !self.undo || !has(self.version) && !has(self.launchTemplate)",message="undo goes back to the version and the launch template of before; leave version and launchTemplate out",fieldPath=".undo"
type UpdateRollout struct {
	// Force terminates a machine even if its pods cannot be evicted in time.
	//
	// +optional
	Force bool `json:"force,omitempty"`

	// Version is the new minor version of Kubernetes of the node group. If omitted, it is not changed.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^1\.[0-9]{1,6}$`
	Version string `json:"version,omitempty"`

	// LaunchTemplate configures new machines. If omitted, it is not changed.
	//
	// +optional
	LaunchTemplate *NodeGroupLaunchTemplate `json:"launchTemplate,omitempty"`

	// KeepCurrent leaves machines running that are of the version and the launch template already.
	//
	// +optional
	KeepCurrent bool `json:"keepCurrent,omitempty"`

	// Undo goes back to the version and the launch template that the node group had before its last rollout. Machines that are of these still
	// keep running.
	//
	// +optional
	Undo bool `json:"undo,omitempty"`

	// RollbackOnFailure has another update undo this one if its rollout fails.
	//
	// +optional
	RollbackOnFailure bool `json:"rollbackOnFailure,omitempty"`
}
