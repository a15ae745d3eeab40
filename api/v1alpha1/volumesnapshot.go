// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FinalizerVolumeSnapshot keeps a VolumeSnapshot until its data is removed. Data that no object names stays.
const FinalizerVolumeSnapshot = "muster.dev/volumesnapshot"

// VolumeSnapshot is a snapshot of a volume that a cluster provisioned: a directory or file beside the volumes of a file system, which nothing
// mounts. Its name is its id, the handle by which VolumeSnapshotContents of the cluster name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=fssnap,categories=muster
// +kubebuilder:printcolumn:name="FileSystem",type=string,JSONPath=`.spec.fileSystemID`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.sourceVolume`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^fssnap-[0-9a-f]{17}$')",message="the name of a snapshot of a volume is its id: fssnap- and 17 hexadecimal digits"
type VolumeSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec VolumeSnapshotSpec `json:"spec"`
}

// VolumeSnapshotSpec describes a snapshot. Only deleteWithCluster can be changed.
//
// +kubebuilder:validation:XValidation:rule="self.?block.orValue(false) == oldSelf.?block.orValue(false)",message="block cannot be changed",fieldPath=".block"
// +kubebuilder:validation:XValidation:rule="self.?capacityBytes.orValue(0) == oldSelf.?capacityBytes.orValue(0)",message="capacityBytes cannot be changed",fieldPath=".capacityBytes"
type VolumeSnapshotSpec struct {
	// FileSystemID is the file system of the volume, and of the snapshot.
	//
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^fs-[0-9a-f]{17}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="fileSystemID cannot be changed"
	FileSystemID string `json:"fileSystemID"`

	// SourceVolume is the handle of the volume, which may be gone.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="sourceVolume cannot be changed"
	SourceVolume string `json:"sourceVolume"`

	// ClusterName is the spec.name of the cluster that made the snapshot. No other cluster can restore it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName cannot be changed"
	ClusterName string `json:"clusterName"`

	// DeleteWithCluster removes the snapshot when the cluster is deleted.
	//
	// +optional
	DeleteWithCluster bool `json:"deleteWithCluster,omitempty"`

	// Block reports whether it is a snapshot of a raw block volume: a file and not a directory.
	//
	// +optional
	Block bool `json:"block,omitempty"`

	// CapacityBytes is the size of the volume at that time: what a volume made of the snapshot has at least.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	CapacityBytes int64 `json:"capacityBytes,omitempty"`
}

// VolumeSnapshotList is a list of snapshots of volumes.
//
// +kubebuilder:object:root=true
type VolumeSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []VolumeSnapshot `json:"items"`
}

// VolumeSnapshotID is the id of a snapshot that a cluster makes under a name, so that a request which comes again makes no other.
func VolumeSnapshotID(clusterName, name string) string {
	return madeID("fssnap-", "snapshot "+name+" of cluster "+clusterName)
}
