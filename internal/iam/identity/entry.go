// SPDX-License-Identifier: Apache-2.0

package identity

// Mode is the authentication mode of a cluster: which sources are asked.
type Mode string

// The modes, as on EKS. They change in this order only.
const (
	ModeConfigMap       Mode = "CONFIG_MAP"         // everything but access entries
	ModeAPIAndConfigMap Mode = "API_AND_CONFIG_MAP" // everything
	ModeAPI             Mode = "API"                // access entries alone
)

// Modes returns all modes, in their order.
func Modes() []Mode { return []Mode{ModeConfigMap, ModeAPIAndConfigMap, ModeAPI} }

// Source is where an entry is written.
type Source string

// The sources, in the order in which they are asked.
const (
	SourceAccessEntry     Source = "AccessEntry"
	SourceIdentityMapping Source = "IAMIdentityMapping"
	SourceAWSAuth         Source = "aws-auth"
	SourceFile            Source = "file"
)

// EntryType is the type of an access entry.
type EntryType string

// The types of access entries. All but STANDARD are for the role of nodes, and say user name and groups by themselves.
const (
	TypeStandard     EntryType = "STANDARD"
	TypeEC2Linux     EntryType = "EC2_LINUX"
	TypeEC2Windows   EntryType = "EC2_WINDOWS"
	TypeFargateLinux EntryType = "FARGATE_LINUX"
	TypeHybridLinux  EntryType = "HYBRID_LINUX"
)

// AccessEntry is one access entry.
type AccessEntry struct {
	// Name is that of its object.
	Name         string
	PrincipalARN string
	// PrincipalID is the id of the principal that the entry was made for. When it is set, a role that was deleted and
	// made again under the same name is another principal.
	PrincipalID string
	Type        EntryType // empty is STANDARD
	Username    string    // empty is the one that EKS makes up
	Groups      []string
	// Policies are the ARNs of its access policies. They say nothing here but that the user is in [PolicyGroup] of this
	// entry.
	Policies []string
}

// Kind is what a mapping names.
type Kind string

// The kinds of mappings.
const (
	KindRole    Kind = "role"
	KindUser    Kind = "user"
	KindAccount Kind = "account"
	KindSSO     Kind = "sso"
)

// SSO names the role that IAM Identity Center makes for a permission set in an account.
type SSO struct {
	PermissionSet string
	Account       string
	Partition     string // empty is the cluster's
}

// Mapping is one entry of any source but access entries.
type Mapping struct {
	Source Source
	// Entry is how people find it: mapRoles[2], or the name of an object.
	Entry string
	Kind  Kind
	// ARN is that of a role or a user. A role's may have a path, and with [Options.RolePatterns] * in its name.
	ARN     string
	Account string // of KindAccount
	SSO     SSO    // of KindSSO
	// PrincipalID is empty, or the id that the principal must have too.
	PrincipalID string
	Username    string
	Groups      []string
}

// PolicyGroupPrefix begins the groups to which access policies are bound. No source may give such a group.
const PolicyGroupPrefix = "muster:access-entry:"

// PolicyGroup is the group of the principals that are mapped by the access entry of that name, if it has access
// policies.
func PolicyGroup(entry string) string { return PolicyGroupPrefix + entry }
