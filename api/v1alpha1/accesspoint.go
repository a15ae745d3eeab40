// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AccessPoint is an access point of EFS: a directory of a file system, as the root of volumes. Its name is its id. A volume that a cluster
// provisions for a StorageClass is an access point that only machines of that cluster can mount. The access point of a raw
// block volume, which EFS does not have, is a file.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=fsap,categories=muster
// +kubebuilder:printcolumn:name="FileSystem",type=string,JSONPath=`.spec.fileSystemID`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^fsap-[0-9a-f]{17}$')",message="an access point's name is its id: fsap- and 17 hexadecimal digits"
type AccessPoint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec AccessPointSpec `json:"spec"`
}

// AccessPointSpec describes an access point. fileSystemID, path, clusterName and block cannot be changed.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterName) == has(oldSelf.clusterName)",message="clusterName cannot be changed; make another access point",fieldPath=".clusterName"
// +kubebuilder:validation:XValidation:rule="self.?block.orValue(false) == oldSelf.?block.orValue(false)",message="block cannot be changed; make another access point",fieldPath=".block"
type AccessPointSpec struct {
	// FileSystemID is the file system of the directory.
	//
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^fs-[0-9a-f]{17}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="fileSystemID cannot be changed; make another access point"
	FileSystemID string `json:"fileSystemID"`

	// Path of the directory, or of the file of a raw block volume, below the file system's root, with at most four elements.
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^/([^/\x00]+(/[^/\x00]+){0,3})?$`
	// +kubebuilder:validation:XValidation:rule="!self.split('/').exists(name, name in ['.', '..'])",message="no name of a path is . or .."
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="path cannot be changed; make another access point"
	Path string `json:"path"`

	// Owner of the directory when it is created. An existing directory is not changed. If omitted, the directory is not created.
	//
	// +optional
	Owner *DirectoryOwner `json:"owner,omitempty"`

	// PosixUser is stored and returned. EFS would use it instead of each caller's user; here files belong to the user that writes them.
	//
	// +optional
	PosixUser *PosixUser `json:"posixUser,omitempty"`

	// ClientToken of the request that created the access point. It is unique.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ClientToken string `json:"clientToken,omitempty"`

	// ClusterName is the spec.name of the cluster that provisioned the access point. No other cluster can mount it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName cannot be changed; make another access point"
	ClusterName string `json:"clusterName,omitempty"`

	// DeleteWithCluster removes the directory and its content when the cluster is deleted.
	//
	// +optional
	DeleteWithCluster bool `json:"deleteWithCluster,omitempty"`

	// Block reports whether the access point is a raw block volume: a file and not a directory.
	//
	// +optional
	Block bool `json:"block,omitempty"`

	// CapacityBytes is the requested size of the volume. It is enforced for raw block volumes only.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	CapacityBytes int64 `json:"capacityBytes,omitempty"`

	// Tags of the AWS API.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// DirectoryOwner is the owner and the mode of a directory that is created.
type DirectoryOwner struct {
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	UID int64 `json:"uid"`

	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	GID int64 `json:"gid"`

	// Permissions in octal digits, such as "0755".
	//
	// +kubebuilder:validation:Pattern=`^[0-7]{3,4}$`
	Permissions string `json:"permissions"`
}

// PosixUser is a numeric user with its groups.
type PosixUser struct {
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	UID int64 `json:"uid"`

	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	GID int64 `json:"gid"`

	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	SecondaryGIDs []int64 `json:"secondaryGIDs,omitempty"`
}

// AccessPointList is a list of access points.
//
// +kubebuilder:object:root=true
type AccessPointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []AccessPoint `json:"items"`
}

// VolumeAccessPointID is the id of the access point of a volume that a cluster makes, so that a request which comes again makes no other.
func VolumeAccessPointID(clusterName, volume string) string {
	return madeID("fsap-", "volume "+volume+" of cluster "+clusterName)
}
