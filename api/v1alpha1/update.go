// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationUpdate on a Cluster, NodeGroup or Addon is the name of the Update that changed it last. The write that makes the change sets
// it, so that a change is made exactly once.
const AnnotationUpdate = "muster.dev/update"

// AnnotationCancel with the value "true" on an Update cancels it. An update that has not started makes no change; a rollout stops.
const AnnotationCancel = "muster.dev/cancel"

// AnnotationUndoes on an Update is the name of the one whose failed rollout it undoes, because that one asked for it. It comes before other updates
// that wait for their turn.
const AnnotationUndoes = "muster.dev/undoes"

// AnnotationForceVersion on a Cluster is the minor version that the cluster is taken to although insights with the status ERROR are against it.
const AnnotationForceVersion = "muster.dev/force-version"

// AnnotationSettingsBefore on a Cluster has the settings of its control plane from before the update that changes them, as JSON, until that has ended.
const AnnotationSettingsBefore = "muster.dev/settings-before"

// AnnotationSetBack on a Cluster says which update failed and was set back, and why, as JSON, until that update says so itself.
const AnnotationSetBack = "muster.dev/set-back"

// AnnotationUpdateGeneration on a Cluster is the generation that it has by the update that changed it last: a later generation is somebody else's.
const AnnotationUpdateGeneration = "muster.dev/update-generation"

// Update is one accepted change of a cluster, node group or add-on, and its progress. It is in the namespace of its cluster. Its name is
// the id in the EKS API. A controller makes the change and waits until it has taken effect.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=muster
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="NodeGroup",type=string,JSONPath=`.spec.nodeGroup`
// +kubebuilder:printcolumn:name="Addon",type=string,JSONPath=`.spec.addon`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Update struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec UpdateSpec `json:"spec"`

	// +optional
	Status UpdateStatus `json:"status,omitzero"`
}

// UpdateSpec describes the change.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an update cannot be changed; make a new one"
// +kubebuilder:validation:XValidation:rule="has(self.nodeGroup) && size(self.nodeGroup) > 0 ? self.type in ['ConfigUpdate', 'VersionUpdate'] : self.type != 'ConfigUpdate'",message="an update of type ConfigUpdate names a node group, and one of type VersionUpdate may; the others do not",fieldPath=".nodeGroup"
// +kubebuilder:validation:XValidation:rule="(self.type == 'AddonUpdate') == (has(self.addon) && size(self.addon) > 0)",message="an update of type AddonUpdate names an add-on; the others do not",fieldPath=".addon"
// +kubebuilder:validation:XValidation:rule="(self.type == 'EtcdDefragmentation') == (has(self.change.defragmentEtcd) && self.change.defragmentEtcd)",message="an update of type EtcdDefragmentation sets defragmentEtcd; the others do not",fieldPath=".change"
type UpdateSpec struct {
	// ClusterName is the spec.name of the cluster.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	ClusterName string `json:"clusterName"`

	// NodeGroup is the spec.name of the node group to change. If this and addon are empty, the cluster is changed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	NodeGroup string `json:"nodeGroup,omitempty"`

	// Addon is the spec.addonName of the add-on to change.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Addon string `json:"addon,omitempty"`

	// TargetUID is the UID of the cluster, node group or add-on. If empty, the name decides.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TargetUID string `json:"targetUID,omitempty"`

	// Type is the type of the update in the EKS API.
	Type UpdateType `json:"type"`

	// Params are the parameters of the change, as the EKS API returns them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Params []UpdateParam `json:"params,omitempty"`

	// Change holds the new values. Omitted fields are not changed.
	Change UpdateChange `json:"change"`
}

// UpdateType is the type of an update in the EKS API.
//
// +kubebuilder:validation:Enum=AccessConfigUpdate;AddonUpdate;AssociateEncryptionConfig;AutoModeUpdate;CertificateAuthorityUpdate;ConfigUpdate;ControlPlaneComponentConfigUpdate;DeletionProtectionUpdate;EndpointAccessUpdate;EtcdDefragmentation;LoggingUpdate;UpgradePolicyUpdate;VersionRollback;VersionUpdate;VpcConfigUpdate;ZonalShiftConfigUpdate
type UpdateType string

// The types of updates.
const (
	UpdateAccessConfig       UpdateType = "AccessConfigUpdate"
	UpdateAddon              UpdateType = "AddonUpdate"
	UpdateAuthority          UpdateType = "CertificateAuthorityUpdate"
	UpdateAutoMode           UpdateType = "AutoModeUpdate"
	UpdateComponentConfig    UpdateType = "ControlPlaneComponentConfigUpdate"
	UpdateConfig             UpdateType = "ConfigUpdate" // of a node group
	UpdateDeletionProtection UpdateType = "DeletionProtectionUpdate"
	UpdateEndpointAccess     UpdateType = "EndpointAccessUpdate"
	UpdateEtcd               UpdateType = "EtcdDefragmentation" // Muster's own: EKS does it by itself
	UpdateLogging            UpdateType = "LoggingUpdate"
	UpdateUpgradePolicy      UpdateType = "UpgradePolicyUpdate"
	UpdateEncryption         UpdateType = "AssociateEncryptionConfig"
	UpdateVersion            UpdateType = "VersionUpdate" // of a cluster or a node group
	UpdateRollback           UpdateType = "VersionRollback"
	UpdateVPCConfig          UpdateType = "VpcConfigUpdate"
	UpdateZonalShiftConfig   UpdateType = "ZonalShiftConfigUpdate"
)

// UpdateParam is a parameter of a change.
type UpdateParam struct {
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type"`
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Value string `json:"value,omitempty"`
}

// UpdateChange holds the new values for a Cluster, NodeGroup or Addon.
type UpdateChange struct {
	// AuthenticationMode of the cluster's accessConfig.
	//
	// +optional
	AuthenticationMode AuthenticationMode `json:"authenticationMode,omitempty"`

	// Version is the new minor version of Kubernetes of the cluster.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^1\.[0-9]{1,6}$`
	Version string `json:"version,omitempty"`

	// Force takes the cluster to the version although insights with the status ERROR are against it.
	//
	// +optional
	Force bool `json:"force,omitempty"`

	// RollbackTimeoutMinutes is how long machines of the Karpenter in the control plane have time to go back before the cluster, 720 if it is omitted. A
	// cluster whose control plane runs no Karpenter has none.
	//
	// +optional
	// +kubebuilder:validation:Minimum=120
	// +kubebuilder:validation:Maximum=10080
	RollbackTimeoutMinutes *int32 `json:"rollbackTimeoutMinutes,omitempty"`

	// Components are new settings of the cluster's control plane.
	//
	// +optional
	Components *UpdateComponents `json:"components,omitempty"`

	// DefragmentEtcd gives back the space of the cluster's etcd that is not in use, if that is worth the seconds in which the API does not
	// answer, and disarms the alarm NOSPACE.
	//
	// +optional
	DefragmentEtcd bool `json:"defragmentEtcd,omitempty"`

	// DeletionProtection of the cluster.
	//
	// +optional
	DeletionProtection *bool `json:"deletionProtection,omitempty"`

	// ZonalShiftEnabled is whether zonal shifts of the cluster can be started.
	//
	// +optional
	ZonalShiftEnabled *bool `json:"zonalShiftEnabled,omitempty"`

	// Compute is the new compute of the cluster, as a whole.
	//
	// +optional
	Compute *ClusterCompute `json:"compute,omitempty"`

	// Logging is the complete new list of enabled log types.
	//
	// +optional
	Logging *UpdateLoggingTypes `json:"logging,omitempty"`

	// SecurityGroups is the complete new list of security groups of the API server's addresses, without the cluster security group.
	//
	// +optional
	SecurityGroups *UpdateSecurityGroups `json:"securityGroups,omitempty"`

	// Endpoint holds the new values of EKS's endpoint switches.
	//
	// +optional
	Endpoint *ClusterEKSEndpoint `json:"endpoint,omitempty"`

	// SupportType of the cluster.
	//
	// +optional
	// +kubebuilder:validation:Enum=STANDARD;EXTENDED
	SupportType string `json:"supportType,omitempty"`

	// EncryptionKeyARN is the ARN of the KMS key to record for the cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	EncryptionKeyARN string `json:"encryptionKeyARN,omitempty"`

	// KubeletAuthority is one step of rotating the certificate authority of kubelets.
	//
	// +optional
	KubeletAuthority *UpdateKubeletAuthority `json:"kubeletAuthority,omitempty"`

	// Scaling holds the new sizes of the node group.
	//
	// +optional
	Scaling *UpdateScaling `json:"scaling,omitempty"`

	// UpdateConfig says how rollouts of the node group replace machines from now on.
	//
	// +optional
	UpdateConfig *NodeGroupUpdateConfig `json:"updateConfig,omitempty"`

	// NodeRepairConfig is the new nodeRepairConfig of the node group, as a whole.
	//
	// +optional
	NodeRepairConfig *NodeRepairConfig `json:"nodeRepairConfig,omitempty"`

	// WarmPool is the new warm pool of the node group.
	//
	// +optional
	WarmPool *UpdateWarmPool `json:"warmPool,omitempty"`

	// Rollout replaces the machines of the node group.
	//
	// +optional
	Rollout *UpdateRollout `json:"rollout,omitempty"`

	// Labels to set on the node group and to remove from it.
	//
	// +optional
	Labels *UpdateLabels `json:"labels,omitempty"`

	// Taints to set on the node group and to remove from it.
	//
	// +optional
	Taints *UpdateTaints `json:"taints,omitempty"`

	// Addon holds the new settings of the add-on.
	//
	// +optional
	Addon *UpdateAddonSettings `json:"addon,omitempty"`
}

// UpdateLabels changes labels. Labels that it does not name are not changed.
type UpdateLabels struct {
	// +optional
	Set NodeLabels `json:"set,omitempty"`

	// Remove lists the keys of labels to remove.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	Remove []string `json:"remove,omitempty"`
}

// UpdateTaints changes taints. Taints that it does not name are not changed.
type UpdateTaints struct {
	// +optional
	Set NodeTaints `json:"set,omitempty"`

	// Remove lists the keys and effects of taints to remove; values are ignored.
	//
	// +optional
	Remove NodeTaints `json:"remove,omitempty"`
}

// UpdateLoggingTypes is a list of log types.
type UpdateLoggingTypes struct {
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	Types []LoggingType `json:"types,omitempty"`
}

// UpdateSecurityGroups is a list of security groups. An empty list removes all.
type UpdateSecurityGroups struct {
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=20
	// +kubebuilder:validation:items:Pattern=`^sg-[0-9a-f]{17}$`
	IDs []string `json:"ids,omitempty"`
}

// UpdateKubeletAuthority is one step of rotating the certificate authority of kubelets. The id of the request is the name of the update.
type UpdateKubeletAuthority struct {
	Step KubeletAuthorityStep `json:"step"`

	// Authority is the id of the authority concerned, or the id for a new one.
	//
	// +kubebuilder:validation:Pattern=`^ca-[0-9a-f]{17}$`
	// +kubebuilder:validation:MaxLength=20
	Authority string `json:"authority"`
}

// UpdateScaling holds sizes of a node group. Omitted sizes are not changed.
type UpdateScaling struct {
	// +optional
	MinSize *int32 `json:"minSize,omitempty"`
	// +optional
	MaxSize *int32 `json:"maxSize,omitempty"`
	// +optional
	DesiredSize *int32 `json:"desiredSize,omitempty"`
}

// UpdatePhase is the status of an update in the EKS API.
//
// +kubebuilder:validation:Enum=InProgress;Successful;Failed;Cancelled
type UpdatePhase string

// The phases. An update without one is in progress.
const (
	UpdateInProgress UpdatePhase = "InProgress"
	UpdateSuccessful UpdatePhase = "Successful"
	UpdateFailed     UpdatePhase = "Failed"
	UpdateCancelled  UpdatePhase = "Cancelled"
)

// UpdateStatus is the progress of an update.
type UpdateStatus struct {
	// Phase is InProgress until the change has taken effect. Empty means InProgress.
	//
	// +optional
	Phase UpdatePhase `json:"phase,omitempty"`

	// Message describes what the update is waiting for. After a successful update it says which part took effect otherwise than usual, if any did.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// AppliedAt is the time at which the object was changed.
	//
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`

	// FinishedAt is the time at which the update ended.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// Steps of the update that have started, in their order.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Steps []UpdateStep `json:"steps,omitempty"`

	// Errors explain why the update failed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Errors []UpdateError `json:"errors,omitempty"`
}

// UpdateError explains why an update failed.
type UpdateError struct {
	// ErrorCode is an error code of the EKS API.
	ErrorCode string `json:"errorCode"`
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ErrorMessage string `json:"errorMessage,omitempty"`
	// +optional
	// +listType=atomic
	ResourceIDs []string `json:"resourceIDs,omitempty"`
}

// Phase returns the status of the update.
func (u *Update) Phase() UpdatePhase {
	if u.Status.Phase == "" {
		return UpdateInProgress
	}
	return u.Status.Phase
}

// UpdateList is a list of updates.
//
// +kubebuilder:object:root=true
type UpdateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Update `json:"items"`
}
