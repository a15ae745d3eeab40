// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Stack is a stack of CloudFormation. Its name is the last part of the stack's ARN. The service alone writes it, by requests of
// CloudFormation's API: a stack is made, changed and deleted there.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="Stack",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Stack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec StackSpec `json:"spec"`

	// +optional
	Status StackStatus `json:"status,omitzero"`
}

// SpecName returns the name of the stack in CloudFormation's API.
func (s *Stack) SpecName() string { return s.Spec.Name }

// StackSpec is what the last request asked for.
type StackSpec struct {
	// Name of the stack. It is unique among the stacks of the account that are not deleted.
	//
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-zA-Z][-a-zA-Z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed; make another stack"
	Name string `json:"name"`

	// Description of the template.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// Template is the body of the template, as it was sent.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=51200
	Template string `json:"template"`

	// Parameters are the values of the template's parameters. Values of NoEcho parameters are shown as ****.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=200
	Parameters []StackParameter `json:"parameters,omitempty"`

	// Capabilities are those that the request acknowledged.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Capabilities []string `json:"capabilities,omitempty"`

	// +optional
	Tags Tags `json:"tags,omitempty"`

	// RoleARN is the role that CloudFormation makes requests with. If it is empty, requests are made with the rights of the
	// principal that asked for the operation.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	RoleARN string `json:"roleARN,omitempty"`

	// NotificationARNs are stored and returned; nothing is sent to them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	NotificationARNs []string `json:"notificationARNs,omitempty"`

	// OnFailure says what follows a failure of the operation: ROLLBACK, DO_NOTHING or DELETE.
	//
	// +kubebuilder:validation:Enum=ROLLBACK;DO_NOTHING;DELETE
	OnFailure string `json:"onFailure"`

	// TerminationProtection refuses DeleteStack.
	//
	// +optional
	TerminationProtection bool `json:"terminationProtection,omitempty"`
}

// StackParameter is the value of a parameter.
type StackParameter struct {
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// StackStatus is how far a stack is.
type StackStatus struct {
	// Status is the status of the stack in CloudFormation's API, such as CREATE_COMPLETE.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Status string `json:"status,omitempty"`

	// Reason of the status.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Updated is the time at which the last update began.
	//
	// +optional
	Updated *metav1.Time `json:"updated,omitempty"`

	// Deleted is the time at which the deletion began.
	//
	// +optional
	Deleted *metav1.Time `json:"deleted,omitempty"`

	// Resources of the stack, in the order in which their creation began.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2000
	Resources []StackResource `json:"resources,omitempty"`

	// Outputs of the template. Values of NoEcho parameters are shown as ****.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=200
	Outputs []StackOutput `json:"outputs,omitempty"`

	// Events are the newest ones, the oldest of them first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Events []StackEvent `json:"events,omitempty"`

	// Sealed is what the service has to know to go on: properties, attributes, and for whom requests are made. It is
	// encrypted, because it has secrets.
	//
	// +optional
	Sealed []byte `json:"sealed,omitempty"`
}

// StackResource is a resource of a stack.
type StackResource struct {
	LogicalID string `json:"logicalID"`
	// PhysicalID is empty until it is known.
	//
	// +optional
	PhysicalID string `json:"physicalID,omitempty"`
	Type       string `json:"type"`
	Status     string `json:"status"`
	// +optional
	Reason string `json:"reason,omitempty"`
	// Time of the last change of the status.
	Time metav1.Time `json:"time"`
}

// StackOutput is an output of a stack.
type StackOutput struct {
	Name string `json:"name"`
	// +optional
	Value string `json:"value"`
	// +optional
	Description string `json:"description,omitempty"`
	// Export is the name by which other stacks import the value.
	//
	// +optional
	Export string `json:"export,omitempty"`
}

// StackEvent is a change of a status, of the stack itself if LogicalID is its name.
type StackEvent struct {
	// ID is unique in the stack.
	ID        string      `json:"id"`
	Time      metav1.Time `json:"time"`
	LogicalID string      `json:"logicalID"`
	// +optional
	PhysicalID string `json:"physicalID,omitempty"`
	Type       string `json:"type"`
	Status     string `json:"status"`
	// +optional
	Reason string `json:"reason,omitempty"`
	// Token is the client token of the request that began the operation.
	//
	// +optional
	Token string `json:"token,omitempty"`
}

// StackList is a list of stacks.
//
// +kubebuilder:object:root=true
type StackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Stack `json:"items"`
}
