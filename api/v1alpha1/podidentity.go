// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PodIdentityAssociation gives the pods of a service account the credentials of an IAM role. It is in the namespace of its cluster. Its
// name is the id in the EKS API. A service account has one association: if there are several, the oldest counts, and of equally old ones
// the first by name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=muster
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="ServiceAccount",type=string,JSONPath=`.spec.serviceAccount`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.roleARN`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^a-[0-9a-z]{17}$')",message="the name of an association is its id: a- and 17 digits and lower-case letters"
type PodIdentityAssociation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec PodIdentityAssociationSpec `json:"spec"`
}

// PodIdentityAssociationSpec names a service account and the role of its pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.policy) || size(self.policy) == 0 || has(self.disableSessionTags) && self.disableSessionTags",message="an association with a policy has disableSessionTags: true",fieldPath=".policy"
type PodIdentityAssociationSpec struct {
	// ClusterName is the spec.name of the cluster.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName cannot be changed; make a new association"
	ClusterName string `json:"clusterName"`

	// Namespace of the service account. It need not exist yet.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="namespace cannot be changed; make a new association"
	Namespace string `json:"namespace"`

	// ServiceAccount is the name of the service account. It need not exist yet.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="serviceAccount cannot be changed; make a new association"
	ServiceAccount string `json:"serviceAccount"`

	// RoleARN is the role whose credentials the pods get. Its trust policy must allow pods.eks.amazonaws.com to assume it.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]+/)?[A-Za-z0-9_+=,.@-]{1,64}$`
	RoleARN string `json:"roleARN"`

	// TargetRoleARN is a second role. The credentials of the first role are used to assume it, and the pods get its credentials instead.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]+/)?[A-Za-z0-9_+=,.@-]{1,64})?$`
	TargetRoleARN string `json:"targetRoleARN,omitempty"`

	// DisableSessionTags omits the session tags for cluster, namespace and service account.
	//
	// +optional
	DisableSessionTags bool `json:"disableSessionTags,omitempty"`

	// Policy is a session policy that limits the credentials.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Policy string `json:"policy,omitempty"`

	// OwnerARN is the ARN of the add-on that owns the association.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	OwnerARN string `json:"ownerARN,omitempty"`

	// Tags are the association's tags in the AWS API.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// PodIdentityAssociationList is a list of associations.
//
// +kubebuilder:object:root=true
type PodIdentityAssociationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []PodIdentityAssociation `json:"items"`
}
