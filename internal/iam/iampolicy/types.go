// SPDX-License-Identifier: Apache-2.0

package iampolicy

import "muster.dev/muster/internal/aws/arn"

// Kind is what a document is for. It settles which elements it may have and how large it may be.
type Kind int

// The kinds.
const (
	Managed    Kind = iota + 1 // a managed policy, 6,144 characters
	UserInline                 // inline in a user, 2,048 for all of them together
	RoleInline                 // inline in a role, 10,240 for all of them together
	Session                    // passed to AssumeRole, 2,048
	Trust                      // a role's trust policy, 2,048
	OfResource                 // the policy of a resource other than a role, such as a queue: it names principals and resources; 20,480
)

// hasPrincipals reports whether statements of a kind say whom they are about. All other documents are about whom they
// are attached to.
func (k Kind) hasPrincipals() bool { return k == Trust || k == OfResource }

// Effect is Allow or Deny.
type Effect string

// The effects.
const (
	AllowEffect Effect = "Allow"
	DenyEffect  Effect = "Deny"
)

// Document is a policy document that Parse read.
type Document struct {
	Kind       Kind
	Version    string
	ID         string
	Statements []Statement
}

// Statement is one statement of a document.
type Statement struct {
	SID          string
	Effect       Effect
	Principals   []Principal // of trust policies and policies of resources only
	Actions      []string
	NotActions   []string
	Resources    []string
	NotResources []string
	Conditions   []Condition

	actions, notActions, resources, notResources []pattern
	conditions                                   []condition
}

// PrincipalKind says how a Principal of a trust policy names somebody.
type PrincipalKind int

// The kinds of principals.
const (
	Anyone    PrincipalKind = iota + 1 // "*"
	Account                            // twelve digits: the account, so everybody in it that an identity policy allows
	ByID                               // AIDA…, AROA… or AROA…:SESSION: bound
	ByARN                              // a user, role or session by name: not yet bound, matches nobody
	Service                            // ec2.amazonaws.com
	Federated                          // the ARN of an identity provider
)

// Principal is one principal of a trust policy.
type Principal struct {
	Kind PrincipalKind
	// Value is as it was written. That of Anyone is "*" if it was written as {"AWS": "*"}, and empty if as "*": Terraform
	// takes the one for another policy than the other.
	Value string
}

// Condition is one key under one operator.
type Condition struct {
	Operator string // as written, such as ForAnyValue:StringLikeIfExists
	Key      string // as written
	Values   []string
}

// Caller is the requesting principal.
type Caller struct {
	ARN     arn.ARN // iam user or root, or sts assumed-role session; the zero ARN for a service
	Account string
	ID      string  // AIDA… or AROA…, without the session; the account id for root
	RoleARN arn.ARN // of an assumed role, with the path, which the session does not tell
	Session string  // of an assumed role
	Service string  // the service that asks, such as ec2.amazonaws.com, and then nothing of the above
	// Federated is the ARN of the identity provider whose token is exchanged for credentials, and then nothing of the
	// above.
	Federated string
}

// Request is one thing that a caller wants to do.
type Request struct {
	Caller   Caller
	Action   string              // sts:AssumeRole
	Resource string              // the ARN, or "*" for actions that have none
	Context  map[string][]string // condition keys in any case; NewContext fills those that follow from the caller
}

// Verdict is what policies say.
type Verdict int

// The verdicts. Neutral is an implicit deny.
const (
	Neutral Verdict = iota
	Allow
	Deny
)

// Decision is the verdict with the statement that made it.
type Decision struct {
	Verdict   Verdict
	Policy    string // the name of the policy
	Statement int    // counted from 1; 0 when no statement decided
	SID       string
	By        Layer  // of Rights and Assume: the kind of policies that said it
	Naming    Naming // of trust policies
	Reason    string
}

// Layer is a kind of policies that bound a request. Each layer must allow the request, and no layer may deny it.
type Layer int

// The layers.
const (
	Identity Layer = iota + 1
	Boundary
	SessionLayer
	TrustLayer
	ResourceLayer
)

// Naming is how a trust policy names the caller, the closer the more. By the account alone an identity policy must
// allow the request, too. As a role, or as anyone, it needs none in the role's own account, and the caller's bounds
// still apply. A user or a session that is named itself is not bound by what merely does not allow it (IAM user guide,
// "Policy evaluation logic").
type Naming int

// The ways.
const (
	NotNamed Naming = iota
	ByAccount
	AsRoleOrAnyone
	ByItself
)

// Named is a document with the name that decisions tell.
type Named struct {
	Name     string
	Document Document
}

// Malformed says where a document is wrong. IAM's error code for it is MalformedPolicyDocument.
type Malformed struct {
	Path     string // $.Statement[0].Condition.StringLike
	Why      string
	TooLarge bool // IAM's code is LimitExceeded then
}

func (e *Malformed) Error() string { return e.Path + ": " + e.Why }
