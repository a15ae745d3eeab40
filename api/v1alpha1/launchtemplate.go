// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// LaunchTemplate is one of EC2's: versions of what an instance is launched with, of which one is the default. Its name is its id. All versions
// are in one object, so that a version and the default that it becomes are one write.
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

// LaunchTemplateSpec has the versions of a launch template.
//
// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="name cannot be changed; make another launch template"
// +kubebuilder:validation:XValidation:rule="self.latestVersion >= oldSelf.latestVersion",message="numbers of versions are not given twice; leave latestVersion as it is"
// +kubebuilder:validation:XValidation:rule="self.versions.exists(v, v.number == self.defaultVersion)",message="defaultVersion must be the number of one of the versions",fieldPath=".defaultVersion"
// +kubebuilder:validation:XValidation:rule="self.versions.all(v, v.number <= self.latestVersion)",message="latestVersion must be the highest number of a version",fieldPath=".latestVersion"
type LaunchTemplateSpec struct {
	// Name of the launch template, by EC2's rules. EC2's API makes no two of one name.
	//
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9().\-/_]+$`
	Name string `json:"name"`

	// CreatedBy is the ARN of who made the launch template.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	CreatedBy string `json:"createdBy,omitempty"`

	// DefaultVersion is the number of the version that $Default names.
	//
	// +kubebuilder:validation:Minimum=1
	DefaultVersion int64 `json:"defaultVersion"`

	// LatestVersion is the highest number that a version has had. It is not given again when that version is deleted.
	//
	// +kubebuilder:validation:Minimum=1
	LatestVersion int64 `json:"latestVersion"`

	// Versions of the launch template, none of which is changed.
	//
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Versions []LaunchTemplateVersion `json:"versions"`

	// Tags are those of the launch template itself. What it launches has those of its data.
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

	// CreatedBy is the ARN of who made the version.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	CreatedBy string `json:"createdBy,omitempty"`

	// Data is EC2's LaunchTemplateData, with the names of its API. EC2's API makes it; see docs/aws-api.md about what it may hold.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Data runtime.RawExtension `json:"data"`

	// Request is the client token of the request that made the version, so that it takes effect once.
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
