// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdateStep is one step of an update. A step starts when the step before it has finished.
type UpdateStep struct {
	// Name of the step.
	Name UpdateStepName `json:"name"`

	// StartedAt is the time at which the step started. The first step starts with the update.
	StartedAt metav1.Time `json:"startedAt"`

	// FinishedAt is the time at which the step finished or failed.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// Message is what the step is waiting for, or why it failed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// UpdateStepName is the name of a step.
//
// +kubebuilder:validation:MaxLength=63
type UpdateStepName string

// The steps of updates. Each update has the step Change, and steps of its type after it.
const (
	// UpdateStepTurn waits until earlier updates of the same target have ended.
	UpdateStepTurn UpdateStepName = "Turn"
	// UpdateStepChange writes the change into the cluster, node group or add-on.
	UpdateStepChange UpdateStepName = "Change"
	// UpdateStepAPIServer has an API server of the new version take the place of the one that serves.
	UpdateStepAPIServer UpdateStepName = "APIServer"
	// UpdateStepControlPlane has the rest of the control plane follow.
	UpdateStepControlPlane UpdateStepName = "ControlPlane"
	// UpdateStepAuthenticator starts the authenticator in its new mode.
	UpdateStepAuthenticator UpdateStepName = "Authenticator"
	// UpdateStepSecurityGroups puts the API server's addresses into their security groups.
	UpdateStepSecurityGroups UpdateStepName = "SecurityGroups"
	// UpdateStepAuthority rotates the certificate authority of kubelets by one step.
	UpdateStepAuthority UpdateStepName = "Authority"
	// UpdateStepScaleUp makes the additional machines of a rollout.
	UpdateStepScaleUp UpdateStepName = "ScaleUp"
	// UpdateStepUpgrade replaces the machines of a node group.
	UpdateStepUpgrade UpdateStepName = "Upgrade"
	// UpdateStepScaleDown waits until a node group that was rolled out has its size, and its nodes are Ready.
	UpdateStepScaleDown UpdateStepName = "ScaleDown"
	// UpdateStepNodes waits until the nodes of a node group are Ready and have its labels and taints.
	UpdateStepNodes UpdateStepName = "Nodes"
	// UpdateStepAddon applies an add-on and waits until it is healthy.
	UpdateStepAddon UpdateStepName = "Addon"
)
