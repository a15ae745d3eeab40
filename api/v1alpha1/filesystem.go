// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FinalizerFileSystem keeps a FileSystem until its data is removed.
const FinalizerFileSystem = "muster.dev/filesystem"

// ConditionDiskPressure on a FileSystem is True while the host's disk has too little space left for new volumes.
const ConditionDiskPressure = "DiskPressure"

// FileSystem is a file system of EFS: a directory of the host that holds volumes of clusters. It has no fixed size. Its name is its id. The
// condition Ready reports whether the directory exists.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=efs,categories=muster
// +kubebuilder:printcolumn:name="FileSystem",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="DiskPressure",type=string,JSONPath=`.status.conditions[?(@.type=="DiskPressure")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^fs-[0-9a-f]{17}$')",message="a file system's name is its id: fs- and 17 hexadecimal digits"
type FileSystem struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec FileSystemSpec `json:"spec"`

	// +optional
	Status FileSystemStatus `json:"status,omitzero"`
}

// FileSystemSpec describes a file system.
//
// +kubebuilder:validation:XValidation:rule="has(self.creationToken) == has(oldSelf.creationToken)",message="creationToken cannot be changed; make another file system",fieldPath=".creationToken"
type FileSystemSpec struct {
	// Name is EFS's tag Name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// CreationToken of the request that created the file system. It is unique.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="creationToken cannot be changed; make another file system"
	CreationToken string `json:"creationToken,omitempty"`

	// Clusters are the names of the clusters that can mount the file system and make volumes in it. Empty means all clusters of the account. A
	// file system with mount targets of EFS's API is limited to the clusters of their VPC, too. Existing mounts stay when this changes.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	Clusters []string `json:"clusters,omitempty"`

	// Tags are the file system's tags in the AWS API, without Name.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// FileSystemStatus is the observed state of a file system.
type FileSystemStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SpecName returns the name that people gave the file system.
func (f *FileSystem) SpecName() string { return f.Spec.Name }

// FileSystemList is a list of file systems.
//
// +kubebuilder:object:root=true
type FileSystemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []FileSystem `json:"items"`
}

// DefaultFileSystem is the name of the file system that every account has, which the default StorageClass of its clusters is about.
const DefaultFileSystem = "default"

// DefaultFileSystemID is the id of the file system that an account comes with.
func DefaultFileSystemID(account string) string {
	return madeID("fs-", "the default file system of "+account)
}
