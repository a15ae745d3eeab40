// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AWSRecord is a resource that AWS's APIs make, keep and read back, and that has no effect here: an internet gateway, a route table, a key pair, a
// KMS key, a log group. Its name is its id in AWS's API if that can be a name; otherwise it is made of the type and a hash of spec.name.
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

// AWSRecordSpec is what is kept of the resource.
//
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type && has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)",message="the type and the name of a record cannot be changed; make another one"
type AWSRecordSpec struct {
	// Type is the kind of resource, as "internet-gateway".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*$`
	Type string `json:"type"`

	// Name is what AWS's API calls the resource, if that is not the name of the object: "alias/eks/blue", "/aws/eks/blue/cluster".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name,omitempty"`

	// +optional
	Tags Tags `json:"tags,omitempty"`

	// Data is what else is kept, in the form of the type. The service reads it strictly: a field that it does not know is an error.
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
