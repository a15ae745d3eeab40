// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationUpdate on a Cluster, NodeGroup or Addon is the name of the Update that changed it last. It is set in the very write that changes the object,
// so that a change is made once, whatever happens afterwards.
const AnnotationUpdate = "muster.dev/update"

// AnnotationCancel on an Update asks for its end: "true". One that has not begun is not made; a rollout stops where it is.
const AnnotationCancel = "muster.dev/cancel"

// Update is one accepted change of a cluster, of a node group or of an add-on: what is to be changed, and how far that is. It is in the namespace of
// its cluster, and its name is the id that EKS's API answers. A controller makes the change and waits for its effect.
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

// UpdateSpec is what is to be changed.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an update cannot be changed; make a new one"
// +kubebuilder:validation:XValidation:rule="(self.type in ['ConfigUpdate', 'VersionUpdate']) == (has(self.nodeGroup) && size(self.nodeGroup) > 0)",message="an update of type ConfigUpdate or VersionUpdate names a node group; the others do not",fieldPath=".nodeGroup"
// +kubebuilder:validation:XValidation:rule="(self.type == 'AddonUpdate') == (has(self.addon) && size(self.addon) > 0)",message="an update of type AddonUpdate names an add-on; the others do not",fieldPath=".addon"
type UpdateSpec struct {
	// ClusterName is the spec.name of the cluster.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	ClusterName string `json:"clusterName"`

	// NodeGroup is the spec.name of the node group that is changed. Empty, like addon, means that the cluster is.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	NodeGroup string `json:"nodeGroup,omitempty"`

	// Addon is the spec.addonName of the add-on that is changed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Addon string `json:"addon,omitempty"`

	// TargetUID is the UID of the cluster, node group or add-on. Empty means whichever has the name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TargetUID string `json:"targetUID,omitempty"`

	// Type is EKS's word for the kind of change.
	Type UpdateType `json:"type"`

	// Params are the parameters of the change, as EKS's API tells of them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Params []UpdateParam `json:"params,omitempty"`

	// Change is what is set. Fields that are left out stay as they are.
	Change UpdateChange `json:"change"`
}

// UpdateType is EKS's word for the kind of change.
//
// +kubebuilder:validation:Enum=AccessConfigUpdate;AddonUpdate;AssociateEncryptionConfig;ConfigUpdate;DeletionProtectionUpdate;EndpointAccessUpdate;LoggingUpdate;UpgradePolicyUpdate;VersionUpdate
type UpdateType string

// The types of updates that there are.
const (
	UpdateAccessConfig       UpdateType = "AccessConfigUpdate"
	UpdateAddon              UpdateType = "AddonUpdate"
	UpdateConfig             UpdateType = "ConfigUpdate" // of a node group
	UpdateDeletionProtection UpdateType = "DeletionProtectionUpdate"
	UpdateEndpointAccess     UpdateType = "EndpointAccessUpdate"
	UpdateLogging            UpdateType = "LoggingUpdate"
	UpdateUpgradePolicy      UpdateType = "UpgradePolicyUpdate"
	UpdateEncryption         UpdateType = "AssociateEncryptionConfig"
	UpdateVersion            UpdateType = "VersionUpdate" // of a node group
)

// UpdateParam is a parameter of a change.
type UpdateParam struct {
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type"`
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Value string `json:"value,omitempty"`
}

// UpdateChange is what is set in a Cluster, a NodeGroup or an Addon.
type UpdateChange struct {
	// AuthenticationMode of the cluster's accessConfig.
	//
	// +optional
	AuthenticationMode AuthenticationMode `json:"authenticationMode,omitempty"`

	// DeletionProtection of the cluster.
	//
	// +optional
	DeletionProtection *bool `json:"deletionProtection,omitempty"`

	// Logging are all types of logs that are enabled from now on.
	//
	// +optional
	Logging *UpdateLoggingTypes `json:"logging,omitempty"`

	// Endpoint are EKS's switches that are set.
	//
	// +optional
	Endpoint *ClusterEKSEndpoint `json:"endpoint,omitempty"`

	// SupportType of the cluster.
	//
	// +optional
	// +kubebuilder:validation:Enum=STANDARD;EXTENDED
	SupportType string `json:"supportType,omitempty"`

	// EncryptionKeyARN is the KMS key of the cluster that is recorded.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	EncryptionKeyARN string `json:"encryptionKeyARN,omitempty"`

	// Scaling are the sizes of the node group that are set.
	//
	// +optional
	Scaling *UpdateScaling `json:"scaling,omitempty"`

	// Rollout replaces the machines of the node group.
	//
	// +optional
	Rollout *UpdateRollout `json:"rollout,omitempty"`

	// Labels of the node group that are set and removed.
	//
	// +optional
	Labels *UpdateLabels `json:"labels,omitempty"`

	// Taints of the node group that are set and removed.
	//
	// +optional
	Taints *UpdateTaints `json:"taints,omitempty"`

	// Addon are the settings of the add-on.
	//
	// +optional
	Addon *UpdateAddonSettings `json:"addon,omitempty"`
}

// UpdateRollout replaces the machines of a node group. The rollout has the name of the update.
type UpdateRollout struct {
	// Force terminates a machine whose pods are not gone in time.
	//
	// +optional
	Force bool `json:"force,omitempty"`

	// LaunchTemplate is what machines are launched by from now on. Left out, it stays as it is.
	//
	// +optional
	LaunchTemplate *NodeGroupLaunchTemplate `json:"launchTemplate,omitempty"`
}

// UpdateLabels changes labels. Those that are not named stay as they are.
type UpdateLabels struct {
	// +optional
	Set NodeLabels `json:"set,omitempty"`

	// Remove has the keys of labels.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	Remove []string `json:"remove,omitempty"`
}

// UpdateTaints changes taints. Those that are not named stay as they are.
type UpdateTaints struct {
	// +optional
	Set NodeTaints `json:"set,omitempty"`

	// Remove has the keys and effects of taints; the values do not matter.
	//
	// +optional
	Remove NodeTaints `json:"remove,omitempty"`
}

// UpdateLoggingTypes are types of logs.
type UpdateLoggingTypes struct {
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	Types []LoggingType `json:"types,omitempty"`
}

// UpdateScaling are sizes of a node group. One that is left out stays as it is.
type UpdateScaling struct {
	// +optional
	MinSize *int32 `json:"minSize,omitempty"`
	// +optional
	MaxSize *int32 `json:"maxSize,omitempty"`
	// +optional
	DesiredSize *int32 `json:"desiredSize,omitempty"`
}

// UpdatePhase says how far an update is, in EKS's words.
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

// UpdateStatus is how far an update is.
type UpdateStatus struct {
	// Phase is InProgress until the change has taken effect. Empty means InProgress.
	//
	// +optional
	Phase UpdatePhase `json:"phase,omitempty"`

	// Message says what the update waits for.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// AppliedAt is when the cluster or node group was changed.
	//
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`

	// FinishedAt is when the update ended.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// Errors are why the update failed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Errors []UpdateError `json:"errors,omitempty"`
}

// UpdateError is why an update failed.
type UpdateError struct {
	// ErrorCode is one of EKS's.
	ErrorCode string `json:"errorCode"`
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ErrorMessage string `json:"errorMessage,omitempty"`
	// +optional
	// +listType=atomic
	ResourceIDs []string `json:"resourceIDs,omitempty"`
}

// Phase is how far the update is.
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
