// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AWSRecord is a resource that an AWS API stores and returns and that has no effect, such as an internet gateway, a route table, a key
// pair, a KMS key or a log group. Its name is its id in the AWS API if that is a valid name; otherwise the type and a hash of spec.name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=awsrecords,scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AWSRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec AWSRecordSpec `json:"spec"`
}

// AWSRecordSpec describes a resource.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name)",message="name cannot be changed; make another record",fieldPath=".name"
type AWSRecordSpec struct {
	// Type is the kind of resource, such as "internet-gateway".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type cannot be changed; make another record"
	Type string `json:"type"`

	// Name is the resource's name in the AWS API if it differs from metadata.name, such as "alias/eks/blue" or "/aws/eks/blue/cluster".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed; make another record"
	Name string `json:"name,omitempty"`

	// +optional
	Tags Tags `json:"tags,omitempty"`

	// Data holds the other properties, in a format for each type. The service reads it strictly: unknown fields are errors.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Data runtime.RawExtension `json:"data"`
}

// AWSRecordList is a list of records.
//
// +kubebuilder:object:root=true
type AWSRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []AWSRecord `json:"items"`
}
