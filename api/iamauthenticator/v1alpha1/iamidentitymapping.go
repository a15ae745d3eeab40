// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IAMIdentityMapping maps an IAM role or user to a Kubernetes user.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=iamidentitymappings,singular=iamidentitymapping,categories=all
// +kubebuilder:printcolumn:name="ARN",type=string,JSONPath=`.spec.arn`
// +kubebuilder:printcolumn:name="Username",type=string,JSONPath=`.spec.username`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type IAMIdentityMapping struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec IAMIdentityMappingSpec `json:"spec"`

	// +optional
	Status IAMIdentityMappingStatus `json:"status,omitzero"`
}

// IAMIdentityMappingSpec maps an ARN to a Kubernetes user.
type IAMIdentityMappingSpec struct {
	// ARN of an IAM role or user.
	//
	// +kubebuilder:validation:MinLength=20
	// +kubebuilder:validation:MaxLength=2048
	ARN string `json:"arn"`

	// Username in the cluster. Templates such as {{EC2PrivateDNSName}} are filled in.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username"`

	// Groups of the user.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=256
	Groups []string `json:"groups,omitempty"`
}

// IAMIdentityMappingStatus is the observed state of the mapping.
type IAMIdentityMappingStatus struct {
	// CanonicalARN is the ARN in the form in which it is compared.
	//
	// +optional
	CanonicalARN string `json:"canonicalARN,omitempty"`

	// UserID is the unique id of the principal, if known.
	//
	// +optional
	UserID string `json:"userID,omitempty"`
}

// IAMIdentityMappingList is a list of mappings.
//
// +kubebuilder:object:root=true
type IAMIdentityMappingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []IAMIdentityMapping `json:"items"`
}
