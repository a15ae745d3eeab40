// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// LaunchTemplate is a launch template of EC2: numbered versions of launch parameters, with one default version. Its name is its id. One
// object holds all versions, so that a new version can become the default in one write.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=lt,categories=muster
// +kubebuilder:printcolumn:name="LaunchTemplate",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Default",type=integer,JSONPath=`.spec.defaultVersion`
// +kubebuilder:printcolumn:name="Latest",type=integer,JSONPath=`.spec.latestVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^lt-[0-9a-f]{17}$')",message="a launch template's name is its id: lt- and 17 hexadecimal digits"
type LaunchTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec LaunchTemplateSpec `json:"spec"`
}

// LaunchTemplateSpec holds the versions of a launch template.
//
// +kubebuilder:validation:XValidation:rule="self.latestVersion >= oldSelf.latestVersion",message="numbers of versions are not given twice; leave latestVersion as it is"
// +kubebuilder:validation:XValidation:rule="self.versions.exists(v, v.number == self.defaultVersion)",message="defaultVersion must be the number of one of the versions",fieldPath=".defaultVersion"
// +kubebuilder:validation:XValidation:rule="self.versions.all(v, v.number <= self.latestVersion)",message="latestVersion must be the highest number of a version",fieldPath=".latestVersion"
type LaunchTemplateSpec struct {
	// Name of the launch template. EC2's rules for names apply, and the EC2 API keeps names unique.
	//
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9().\-/_]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed; make another launch template"
	Name string `json:"name"`

	// CreatedBy is the ARN of the principal that created the launch template.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	CreatedBy string `json:"createdBy,omitempty"`

	// DefaultVersion is the number of the version that $Default refers to.
	//
	// +kubebuilder:validation:Minimum=1
	DefaultVersion int64 `json:"defaultVersion"`

	// LatestVersion is the highest number ever assigned. Numbers of deleted versions are not assigned again.
	//
	// +kubebuilder:validation:Minimum=1
	LatestVersion int64 `json:"latestVersion"`

	// Versions of the launch template. A version is immutable.
	//
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Versions []LaunchTemplateVersion `json:"versions"`

	// Tags of the launch template itself. Instances get the tags in the data of a version.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// LaunchTemplateVersion is one version of a launch template.
type LaunchTemplateVersion struct {
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`

	// +optional
	// +kubebuilder:validation:MaxLength=255
	Description string `json:"description,omitempty"`

	// +optional
	CreateTime metav1.Time `json:"createTime,omitzero"`

	// CreatedBy is the ARN of the principal that created the version.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	CreatedBy string `json:"createdBy,omitempty"`

	// Data is EC2's LaunchTemplateData, with the names of the EC2 API, which writes it. docs/aws-api.md lists the supported fields.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Data runtime.RawExtension `json:"data"`

	// Request is the client token of the request that created the version. It makes the request idempotent.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Request string `json:"request,omitempty"`
}

// LaunchTemplateList is a list of launch templates.
//
// +kubebuilder:object:root=true
type LaunchTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []LaunchTemplate `json:"items"`
}
