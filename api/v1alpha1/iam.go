// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// NamespaceIAM is the namespace of the Secrets of access keys.
	NamespaceIAM = "muster-iam"
	// SecretTypeAccessKey is the type of the Secret of an access key. The Secret's name is the key's id in lower case.
	SecretTypeAccessKey = "muster.dev/iam-access-key" //nolint:gosec // G101: the name of a type
	// LabelIAMUser on the Secret of an access key is the unique id of its user.
	LabelIAMUser = "muster.dev/iam-user"
	// LabelIAMStatus on the Secret of an access key is Active or Inactive; a key with another value cannot be used.
	LabelIAMStatus = "muster.dev/iam-status"
	// LabelIAMAccount on the Secret of an access key is the account of its user.
	LabelIAMAccount = "muster.dev/iam-account"
)

// The kinds of identity and access management. They are written by the identity service, which speaks the AWS API. Another
// client must write what the service would write: the service ignores an object that contradicts itself.
//
// IAM's names are not Kubernetes' (they have capitals, _ + = , . @), so an object has a name that is made of the account and the name;
// two names that differ in case only make one name, and that is IAM's rule of uniqueness.

// IAMAccount is an account, within which the names of IAM are unique. Its name is its id, which has twelve digits.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iamaccounts,scope=Cluster,categories=iam
// +kubebuilder:printcolumn:name="ARN",type=string,JSONPath=`.spec.arn`
// +kubebuilder:printcolumn:name="Alias",type=string,JSONPath=`.spec.alias`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[0-9]{12}$')",message="an account's name is its id: twelve digits"
// +kubebuilder:validation:XValidation:rule="self.spec.arn == 'arn:aws:iam::' + self.metadata.name + ':root'",message="spec.arn must be arn:aws:iam::ACCOUNT:root"
type IAMAccount struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec IAMAccountSpec `json:"spec"`
}

// IAMAccountSpec describes an account.
type IAMAccountSpec struct {
	// +kubebuilder:validation:MaxLength=64
	ARN string `json:"arn"`

	// Alias is the account alias.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9]|-[a-z0-9])*$`
	Alias string `json:"alias,omitempty"`
}

// IAMAccountList is a list of accounts.
//
// +kubebuilder:object:root=true
type IAMAccountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []IAMAccount `json:"items"`
}

// IAMName is the account, path and name of an entity. A user can get another path, so the spec of each kind has the rules of path and name.
type IAMName struct {
	// Account is the id of the account.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="account cannot be changed"
	Account string `json:"account"`

	// Path begins and ends with a slash.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/([!-~]*/)?$`
	Path string `json:"path"`

	// Name as given, with its capitals.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+=,.@-]+$`
	Name string `json:"name"`

	// ARN is composed of account, path and name.
	//
	// +kubebuilder:validation:MaxLength=700
	ARN string `json:"arn"`

	// Created is the time at which the entity was created. The object may be younger, because renaming creates a new object.
	Created metav1.Time `json:"created"`
}

// IAMTags are the tags of an entity.
//
// +kubebuilder:validation:MaxItems=50
// +listType=map
// +listMapKey=key
type IAMTags []IAMTag

// IAMTag is one tag.
type IAMTag struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Key string `json:"key"`

	// +optional
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
}

// IAMGrants are the policies of a user or role.
type IAMGrants struct {
	// AttachedPolicies are the ARNs of attached managed policies.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=set
	AttachedPolicies []string `json:"attachedPolicies,omitempty"`

	// InlinePolicies are the policies embedded in this user or role.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	InlinePolicies []IAMInlinePolicy `json:"inlinePolicies,omitempty"`
}

// IAMInlinePolicy is one inline policy.
type IAMInlinePolicy struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// Document is the policy as written, in JSON.
	//
	// +kubebuilder:validation:MaxLength=131072
	Document string `json:"document"`
}

// IAMUser is an IAM user. Its access keys are Secrets in the namespace muster-iam.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iamusers,scope=Cluster,categories=iam
// +kubebuilder:printcolumn:name="ARN",type=string,JSONPath=`.spec.arn`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.spec.userID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.created`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.startsWith(self.spec.account + '.')",message="the name begins with the account and a dot"
type IAMUser struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec IAMUserSpec `json:"spec"`
}

// IAMUserSpec describes a user.
//
// +kubebuilder:validation:XValidation:rule="self.arn == 'arn:aws:iam::' + self.account + ':user' + self.path + self.name",message="arn must be made of account, path and name"
// +kubebuilder:validation:XValidation:rule="self.name.lowerAscii() == oldSelf.name.lowerAscii()",message="name cannot be changed, but for capitals: another name is another object",fieldPath=".name"
type IAMUserSpec struct {
	IAMName `json:",inline"`

	// UserID is the unique id. It is not assigned again, even to a new user of the same name.
	//
	// +kubebuilder:validation:Pattern=`^AIDA[A-Z2-7]{17}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="userID cannot be changed"
	UserID string `json:"userID"`

	// RenamedFrom is the previous name of the user. The object of that name with the same userID is ignored.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	RenamedFrom string `json:"renamedFrom,omitempty"`

	// +optional
	Tags IAMTags `json:"tags,omitempty"`

	// PermissionsBoundary is the ARN of the managed policy that limits the permissions of the user.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	PermissionsBoundary string `json:"permissionsBoundary,omitempty"`

	IAMGrants `json:",inline"`
}

// IAMUserList is a list of users.
//
// +kubebuilder:object:root=true
type IAMUserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []IAMUser `json:"items"`
}

// IAMRole is an IAM role. Principals that its trust policy allows can assume it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iamroles,scope=Cluster,categories=iam
// +kubebuilder:printcolumn:name="ARN",type=string,JSONPath=`.spec.arn`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.spec.roleID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.created`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.startsWith(self.spec.account + '.')",message="the name begins with the account and a dot"
type IAMRole struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec IAMRoleSpec `json:"spec"`
}

// IAMRoleSpec describes a role.
//
// +kubebuilder:validation:XValidation:rule="self.arn == 'arn:aws:iam::' + self.account + ':role' + self.path + self.name",message="arn must be made of account, path and name"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path cannot be changed",fieldPath=".path"
// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="name cannot be changed",fieldPath=".name"
type IAMRoleSpec struct {
	IAMName `json:",inline"`

	// RoleID is the unique id. It is not assigned again, even to a new role of the same name.
	//
	// +kubebuilder:validation:Pattern=`^AROA[A-Z2-7]{17}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="roleID cannot be changed"
	RoleID string `json:"roleID"`

	// +optional
	// +kubebuilder:validation:MaxLength=1000
	Description string `json:"description,omitempty"`

	// TrustPolicy names the principals that can assume the role. Principals are stored by their unique ids.
	//
	// +kubebuilder:validation:MaxLength=131072
	TrustPolicy string `json:"trustPolicy"`

	// MaxSessionSeconds is the maximum lifetime of a session of the role.
	//
	// +kubebuilder:validation:Minimum=3600
	// +kubebuilder:validation:Maximum=43200
	MaxSessionSeconds int32 `json:"maxSessionSeconds"`

	// +optional
	Tags IAMTags `json:"tags,omitempty"`

	// PermissionsBoundary is the ARN of the managed policy that limits the permissions of the role.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	PermissionsBoundary string `json:"permissionsBoundary,omitempty"`

	IAMGrants `json:",inline"`
}

// IAMRoleList is a list of roles.
//
// +kubebuilder:object:root=true
type IAMRoleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []IAMRole `json:"items"`
}

// IAMInstanceProfile is an IAM instance profile, which gives a role to machines.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iaminstanceprofiles,scope=Cluster,categories=iam
// +kubebuilder:printcolumn:name="ARN",type=string,JSONPath=`.spec.arn`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.roleName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.created`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.startsWith(self.spec.account + '.')",message="the name begins with the account and a dot"
type IAMInstanceProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec IAMInstanceProfileSpec `json:"spec"`
}

// IAMInstanceProfileSpec describes an instance profile.
//
// +kubebuilder:validation:XValidation:rule="self.arn == 'arn:aws:iam::' + self.account + ':instance-profile' + self.path + self.name",message="arn must be made of account, path and name"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path cannot be changed",fieldPath=".path"
// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="name cannot be changed",fieldPath=".name"
// +kubebuilder:validation:XValidation:rule="has(self.roleID) == has(self.roleName)",message="roleID and roleName are both there or neither"
type IAMInstanceProfileSpec struct {
	IAMName `json:",inline"`

	// +kubebuilder:validation:Pattern=`^AIPA[A-Z2-7]{17}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="profileID cannot be changed"
	ProfileID string `json:"profileID"`

	// RoleID is the unique id of the profile's role. A new role with the name of a deleted one has another id and does not replace it.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^AROA[A-Z2-7]{17}$`
	RoleID string `json:"roleID,omitempty"`

	// +optional
	// +kubebuilder:validation:MaxLength=64
	RoleName string `json:"roleName,omitempty"`

	// +optional
	Tags IAMTags `json:"tags,omitempty"`
}

// IAMInstanceProfileList is a list of instance profiles.
//
// +kubebuilder:object:root=true
type IAMInstanceProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []IAMInstanceProfile `json:"items"`
}

// IAMPolicy is a customer-managed IAM policy.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iampolicies,scope=Cluster,categories=iam
// +kubebuilder:printcolumn:name="ARN",type=string,JSONPath=`.spec.arn`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.defaultVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.created`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.startsWith(self.spec.account + '.')",message="the name begins with the account and a dot"
type IAMPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec IAMPolicySpec `json:"spec"`
}

// IAMPolicySpec describes a managed policy.
//
// +kubebuilder:validation:XValidation:rule="self.arn == 'arn:aws:iam::' + self.account + ':policy' + self.path + self.name",message="arn must be made of account, path and name"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path cannot be changed",fieldPath=".path"
// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="name cannot be changed",fieldPath=".name"
// +kubebuilder:validation:XValidation:rule="self.versions.exists(v, v.id == self.defaultVersion)",message="defaultVersion must be one of versions"
type IAMPolicySpec struct {
	IAMName `json:",inline"`

	// +kubebuilder:validation:Pattern=`^ANPA[A-Z2-7]{17}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="policyID cannot be changed"
	PolicyID string `json:"policyID"`

	// +optional
	// +kubebuilder:validation:MaxLength=1000
	Description string `json:"description,omitempty"`

	// DefaultVersion is the id of the version in force.
	//
	// +kubebuilder:validation:MaxLength=12
	DefaultVersion string `json:"defaultVersion"`

	// Versions, the oldest first.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +listType=map
	// +listMapKey=id
	Versions []IAMPolicyVersion `json:"versions"`

	// Updated is the time of the last change.
	Updated metav1.Time `json:"updated"`

	// +optional
	Tags IAMTags `json:"tags,omitempty"`
}

// IAMPolicyVersion is one version of a managed policy.
type IAMPolicyVersion struct {
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:Pattern=`^v[1-9][0-9]*$`
	ID string `json:"id"`

	// Document is the policy as written, in JSON.
	//
	// +kubebuilder:validation:MaxLength=131072
	Document string `json:"document"`

	Created metav1.Time `json:"created"`
}

// IAMPolicyList is a list of managed policies.
//
// +kubebuilder:object:root=true
type IAMPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []IAMPolicy `json:"items"`
}
