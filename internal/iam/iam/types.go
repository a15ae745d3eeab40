// SPDX-License-Identifier: Apache-2.0

package iam

import (
	"time"
)

// Account is one account: the border within which names are unique.
type Account struct {
	ID      string // twelve digits
	Alias   string // may be empty
	Created time.Time
}

// Tag is one tag of a user, role, instance profile or policy.
type Tag struct{ Key, Value string }

// Grants are the permissions that a user or a role holds itself.
type Grants struct {
	Attached []string          // ARNs of managed policies
	Inline   map[string]string // inline policies: name to document, as written
}

// User is one IAM user.
type User struct {
	ID      string // AIDA…
	Account string
	Path    string // begins and ends with a slash
	Name    string
	Created time.Time
	Tags    []Tag
	// Boundary is the ARN of the managed policy that bounds what the grants give; empty without one.
	Boundary string
	Grants
}

// KeyStatus reports whether an access key may be used.
type KeyStatus string

// The two statuses of an access key.
const (
	Active   KeyStatus = "Active"
	Inactive KeyStatus = "Inactive"
)

// AccessKey is a long-lived key of one user, told by the user's unique id and not by the name.
type AccessKey struct {
	ID       string // AKIA…
	Account  string
	UserID   string // AIDA…
	UserName string
	Secret   Secret
	Status   KeyStatus
	Created  time.Time
}

// Role is one IAM role.
type Role struct {
	ID          string // AROA…
	Account     string
	Path        string
	Name        string
	Description string
	Trust       string // the trust policy with its principals bound to unique ids: iampolicy.Document.Bind
	MaxSession  time.Duration
	Created     time.Time
	Tags        []Tag
	// Boundary is the ARN of the managed policy that bounds what the grants give; empty without one.
	Boundary string
	Grants
}

// InstanceProfile carries one role at most to an instance.
type InstanceProfile struct {
	ID       string // AIPA…
	Account  string
	Path     string
	Name     string
	RoleID   string // AROA…, empty without a role
	RoleName string
	Created  time.Time
	Tags     []Tag
}

// Policy is a managed policy. Account is "aws" for those that AWS manages.
type Policy struct {
	ID          string // ANPA…
	Account     string
	Path        string
	Name        string
	Description string
	Default     string          // the version in force, such as v1
	Versions    []PolicyVersion // oldest first, five at most
	Created     time.Time
	Updated     time.Time
	Tags        []Tag
}

// PolicyVersion is one version of a managed policy.
type PolicyVersion struct {
	ID       string // v1, v2, …
	Document string // as written
	Created  time.Time
}

// Document is the text of the version in force; ok is false if the policy has no such version.
func (p Policy) Document() (text string, ok bool) {
	for _, version := range p.Versions {
		if version.ID == p.Default {
			return version.Document, true
		}
	}
	return "", false
}
