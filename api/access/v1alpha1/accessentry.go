// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EntryType is the kind of principal that an entry is for.
//
// +kubebuilder:validation:Enum=STANDARD;EC2_LINUX;EC2_WINDOWS;FARGATE_LINUX;HYBRID_LINUX
type EntryType string

// The types. All but STANDARD are for roles of nodes, and imply the user name and the groups.
const (
	TypeStandard     EntryType = "STANDARD"
	TypeEC2Linux     EntryType = "EC2_LINUX"
	TypeEC2Windows   EntryType = "EC2_WINDOWS"
	TypeFargateLinux EntryType = "FARGATE_LINUX"
	TypeHybridLinux  EntryType = "HYBRID_LINUX"
)

// ScopeType is the extent of an access policy.
//
// +kubebuilder:validation:Enum=cluster;namespace
type ScopeType string

// The scopes of access policies.
const (
	ScopeCluster   ScopeType = "cluster"
	ScopeNamespace ScopeType = "namespace"
)

// The conditions of an access entry.
const (
	// ConditionAccepted reports whether the entry maps its principal. The message names the fault.
	ConditionAccepted = "Accepted"
	// ConditionPoliciesApplied reports whether the cluster has the RBAC objects of the entry's access policies.
	ConditionPoliciesApplied = "PoliciesApplied"
	// ConditionPrincipalKnown reports whether the principal that the entry was made for is recorded. It is False where there was none when
	// the entry was made: then the entry lets nobody in.
	ConditionPrincipalKnown = "PrincipalKnown"
)

// AccessEntry gives one IAM principal access to the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=accessentries,singular=accessentry,shortName=ae,categories=muster
// +kubebuilder:printcolumn:name="Principal",type=string,JSONPath=`.spec.principalARN`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Groups",type=string,JSONPath=`.spec.kubernetesGroups`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AccessEntry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec AccessEntrySpec `json:"spec"`

	// +optional
	Status AccessEntryStatus `json:"status,omitzero"`
}

// AccessEntrySpec maps an IAM principal to a Kubernetes user.
//
// +kubebuilder:validation:XValidation:rule="self.principalARN == oldSelf.principalARN",message="the principal of an access entry cannot be changed; delete the entry and make another",fieldPath=".principalARN"
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",message="the type of an access entry cannot be changed; delete the entry and make another",fieldPath=".type"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.principalID) || (has(self.principalID) && self.principalID == oldSelf.principalID)",message="a principal's id that has been recorded cannot be changed; delete the entry and make another",fieldPath=".principalID"
// +kubebuilder:validation:XValidation:rule="self.type == 'STANDARD' || !has(self.username)",message="entries of nodes have the user name of their type",fieldPath=".username"
// +kubebuilder:validation:XValidation:rule="self.type == 'STANDARD' || !has(self.kubernetesGroups) || size(self.kubernetesGroups) == 0",message="entries of nodes have the groups of their type",fieldPath=".kubernetesGroups"
// +kubebuilder:validation:XValidation:rule="self.type == 'STANDARD' || !has(self.accessPolicies) || size(self.accessPolicies) == 0",message="entries of nodes have no access policies",fieldPath=".accessPolicies"
// +kubebuilder:validation:XValidation:rule="self.type == 'STANDARD' || self.principalARN.matches('^arn:[^:]+:iam::[0-9]{12}:role/')",message="only roles can be those of nodes",fieldPath=".principalARN"
type AccessEntrySpec struct {
	// PrincipalARN is the ARN of an IAM role or user, with its path. It is not the ARN of an instance profile or of a role session.
	//
	// +kubebuilder:validation:MinLength=20
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/([!-~]+/)?[A-Za-z0-9_+=,.@-]{1,64}$')",message="it is the ARN of a role or a user, whose name has at most 64 characters: arn:aws:iam::111122223333:role/NAME"
	// +kubebuilder:validation:XValidation:rule="!self.contains(':role/aws-service-role/')",message="service-linked roles cannot be let in"
	PrincipalARN string `json:"principalARN"`

	// PrincipalID is the principal's unique id, AROA… or AIDA…. If set, a role or user that was deleted and created again under its name is a
	// different principal and is not let in. In Muster's own clusters it is filled in when the entry is created, and an entry without it lets
	// nobody in.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^A[A-Z2-7]{3}[A-Z0-9]{12,124}$`
	PrincipalID string `json:"principalID,omitempty"`

	// Type of the entry: STANDARD for people and programs, the other types for nodes.
	//
	// +optional
	// +kubebuilder:default=STANDARD
	Type EntryType `json:"type,omitempty"`

	// Username in the cluster. The default is the ARN for a user, and arn:aws:sts::ACCOUNT:assumed-role/NAME/{{SessionName}} for a role.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!(self.startsWith('system:') || self.startsWith('eks:') || self.startsWith('aws:') || self.startsWith('amazon:') || self.startsWith('iam:'))",message="it must not begin with system:, eks:, aws:, amazon: or iam:"
	// +kubebuilder:validation:XValidation:rule="!self.contains('{{SessionName') || self.matches('^[^{]*:.*[{]{2}SessionName')",message="{{SessionName}} is chosen by the caller, so it must come after a colon, as in team:{{SessionName}}"
	Username string `json:"username,omitempty"`

	// KubernetesGroups are the groups of the principal in the cluster.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="!self.startsWith('system:')",message="groups that begin with system: cannot be given; use an access policy, such as AmazonEKSClusterAdminPolicy for system:masters"
	// +kubebuilder:validation:items:XValidation:rule="!self.startsWith('muster:access-entry:')",message="groups that begin with muster:access-entry: are those of access policies"
	KubernetesGroups []string `json:"kubernetesGroups,omitempty"`

	// AccessPolicies are the EKS access policies of the principal.
	//
	// +optional
	// +listType=map
	// +listMapKey=policyARN
	// +kubebuilder:validation:MaxItems=20
	AccessPolicies []AccessPolicy `json:"accessPolicies,omitempty"`
}

// AccessPolicy is an EKS access policy and its scope.
type AccessPolicy struct {
	// PolicyARN is the ARN of an EKS access policy, such as arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy.
	//
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^arn:aws[a-z-]*:eks::aws:cluster-access-policy/[A-Za-z0-9]{1,128}$`
	PolicyARN string `json:"policyARN"`

	Scope AccessScope `json:"scope"`
}

// AccessScope is the whole cluster or some namespaces.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'namespace' || (has(self.namespaces) && size(self.namespaces) > 0)",message="name the namespaces",fieldPath=".namespaces"
// +kubebuilder:validation:XValidation:rule="self.type == 'namespace' || !has(self.namespaces) || size(self.namespaces) == 0",message="a policy of the whole cluster names no namespaces",fieldPath=".namespaces"
type AccessScope struct {
	Type ScopeType `json:"type"`

	// Namespaces by name, or by a pattern with *, such as dev-*.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?$`
	Namespaces []string `json:"namespaces,omitempty"`
}

// AccessEntryStatus is the observed state of an access entry.
type AccessEntryStatus struct {
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AccessEntryList is a list of access entries.
//
// +kubebuilder:object:root=true
type AccessEntryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []AccessEntry `json:"items"`
}
