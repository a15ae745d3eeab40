// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationCordoned is on a Node that a rollout has cordoned, so that the end of the rollout uncordons no other.
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
