// SPDX-License-Identifier: Apache-2.0

package identity

import "muster.dev/muster/internal/aws/arn"

// Instance is the instance that a session belongs to. The STS backend has proven it: muster's own issued the session
// through the instance's profile, or EC2 was asked. It is never what the caller said, such as the name of its session.
type Instance struct {
	ID             string `json:"id"`
	PrivateDNSName string `json:"privateDNSName"`
}

// Machine is a machine of muster's own account.
type Machine struct {
	ID string `json:"id"`
	// Cluster is the name of the cluster that it was launched for; empty for an instance of no cluster.
	Cluster string `json:"cluster,omitempty"`
}

// Principal is an AWS principal that STS vouches for.
type Principal struct {
	// ARN is what STS answers: arn:aws:sts::111122223333:assumed-role/R/S for a session of a role.
	ARN arn.ARN `json:"arn"`
	// CanonicalARN is the role of a session, arn:aws:iam::111122223333:role/R, and the same as ARN for others.
	CanonicalARN arn.ARN `json:"canonicalARN"`
	Account      string  `json:"account"`
	// UserID is the principal's id, AIDA… of a user and AROA… of a role, without the session that STS appends.
	UserID string `json:"userID"`
	// SessionName is the part of the caller's own choosing; empty where there is no session.
	SessionName string `json:"sessionName,omitempty"`
	AccessKeyID string `json:"accessKeyID,omitempty"`
	// Instance is nil unless the session has been proven to be an instance's.
	Instance *Instance `json:"instance,omitempty"`
	// Machine is the machine that the first credentials of a chain of sessions were given to, its own role's or those
	// of roles assumed since. It is nil where they began elsewhere, and with AWS's STS, which does not say.
	Machine *Machine `json:"machine,omitempty"`
}

// User is what a principal becomes, in the form of a TokenReview's answer.
type User struct {
	Name   string              `json:"name"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
}
