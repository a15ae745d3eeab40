// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FinalizerAddon keeps an Addon until its objects are removed from the cluster, or are left there as spec.preserve asks.
const FinalizerAddon = "muster.dev/addon"

// MaxAddonValues is the maximum length of an add-on's configuration, in characters.
const MaxAddonValues = 65536

// Addon is an EKS add-on of the cluster in whose namespace it is. Its name is spec.addonName. A controller applies the add-on's objects to
// the cluster and checks their health.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=muster
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.addonName",message="metadata.name must be spec.addonName"
type Addon struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec AddonSpec `json:"spec"`

	// +optional
	Status AddonStatus `json:"status,omitzero"`
}

// AddonSpec is the desired state of an add-on.
type AddonSpec struct {
	// AddonName is the name of the add-on in the EKS API, such as coredns.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	AddonName string `json:"addonName"`

	// Version of the add-on, such as v1.15.0-eksbuild.1. Empty means the default version for the cluster's Kubernetes version.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+$`
	Version string `json:"version,omitempty"`

	// ConfigurationValues configure the add-on, in JSON or YAML. They must match the schema of the add-on's version, which `aws eks
	// describe-addon-configuration` prints.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ConfigurationValues string `json:"configurationValues,omitempty"`

	// ServiceAccountRoleARN is the IAM role of the add-on's service account. It is set there as the annotation eks.amazonaws.com/role-arn. An
	// add-on without a service account stores and returns it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:`
	ServiceAccountRoleARN string `json:"serviceAccountRoleARN,omitempty"`

	// ResolveConflicts decides about fields that another client has set to another value. NONE: the add-on fails and changes nothing.
	// OVERWRITE: the add-on's values are set. PRESERVE: on an update the other values stay; on a creation the add-on fails.
	//
	// +optional
	// +kubebuilder:default=NONE
	ResolveConflicts ResolveConflicts `json:"resolveConflicts,omitempty"`

	// Preserve leaves the add-on's objects in the cluster when the Addon is deleted.
	//
	// +optional
	Preserve bool `json:"preserve,omitempty"`

	// Tags are the add-on's tags in the AWS API. Kubernetes does not use them.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// ResolveConflicts is a way to resolve conflicts, in EKS's terms.
//
// +kubebuilder:validation:Enum=NONE;OVERWRITE;PRESERVE
type ResolveConflicts string

// The ways to resolve conflicts. An empty one is NONE.
const (
	ConflictsNone      ResolveConflicts = "NONE"
	ConflictsOverwrite ResolveConflicts = "OVERWRITE"
	ConflictsPreserve  ResolveConflicts = "PRESERVE"
)

// AddonPhase is the status of an add-on in the EKS API.
//
// +kubebuilder:validation:Enum=CREATING;ACTIVE;CREATE_FAILED;UPDATING;DELETING;DELETE_FAILED;DEGRADED;UPDATE_FAILED
type AddonPhase string

// The phases. An add-on without one is being created.
const (
	AddonCreating     AddonPhase = "CREATING"
	AddonActive       AddonPhase = "ACTIVE"
	AddonCreateFailed AddonPhase = "CREATE_FAILED"
	AddonUpdating     AddonPhase = "UPDATING"
	AddonDeleting     AddonPhase = "DELETING"
	AddonDeleteFailed AddonPhase = "DELETE_FAILED"
	AddonDegraded     AddonPhase = "DEGRADED"
	AddonUpdateFailed AddonPhase = "UPDATE_FAILED"
)

// AddonStatus is the observed state of an add-on.
type AddonStatus struct {
	// Phase is the status in the EKS API.
	//
	// +optional
	Phase AddonPhase `json:"phase,omitempty"`

	// Version is the version whose objects are in the cluster.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Applied is a hash of the objects that were applied last. They are applied again when the hash changes, or when an object is missing.
	//
	// +optional
	Applied string `json:"applied,omitempty"`

	// AppliedAt is the time at which the objects were last applied.
	//
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`

	// Issues are the health issues of the add-on.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Issues []AddonIssue `json:"issues,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AddonIssue is a health issue of an add-on.
type AddonIssue struct {
	// Code is a code of the EKS API, such as InsufficientNumberOfReplicas.
	Code string `json:"code"`
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// ResourceIDs name the objects in the cluster that have the issue.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ResourceIDs []string `json:"resourceIDs,omitempty"`
}

// Phase returns the status of the add-on: UPDATING if the spec has changed since the status was written.
func (a *Addon) Phase() AddonPhase {
	switch {
	case !a.DeletionTimestamp.IsZero():
		if a.Status.Phase == AddonDeleteFailed {
			return AddonDeleteFailed
		}
		return AddonDeleting
	case a.Status.Phase == "":
		return AddonCreating
	case a.Status.ObservedGeneration < a.Generation && a.Status.Applied == "":
		return AddonCreating
	case a.Status.ObservedGeneration < a.Generation:
		return AddonUpdating
	}
	return a.Status.Phase
}

// AddonList is a list of add-ons.
//
// +kubebuilder:object:root=true
type AddonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Addon `json:"items"`
}

// UpdateAddonSettings holds settings of an add-on. Omitted settings are not changed.
type UpdateAddonSettings struct {
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version *string `json:"version,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ConfigurationValues *string `json:"configurationValues,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ServiceAccountRoleARN *string `json:"serviceAccountRoleARN,omitempty"`
	// ResolveConflicts holds from this change on. If omitted, it is NONE.
	//
	// +optional
	ResolveConflicts ResolveConflicts `json:"resolveConflicts,omitempty"`
}
