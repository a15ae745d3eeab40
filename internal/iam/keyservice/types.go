// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"muster.dev/muster/internal/iam/identity"
)

// Paths of the service. Anything else is 404 without a Refusal, which a client takes for "could not tell".
const (
	PathVerify          = "/v1/verify"
	PathRoleCredentials = "/v1/role-credentials" //nolint:gosec // G101: a path
	PathChanges         = "/v1/changes"

	// querySessions is how a client of PathChanges says that it knows [Change.Sessions]. Clients of the release before
	// do not say so, and are told All.
	querySessions = "sessions"
)

// Bounds that both ends keep.
const (
	MaxQuery  = 16 << 10 // bytes of a request's body; tokens have at most 4096
	MaxAnswer = 64 << 10 // bytes of an answer, and of one line of the stream
	MaxNamed  = 256      // names in one event; a change of more is told as All

	Heartbeat  = time.Second     // between two events, at most
	StaleAfter = 3 * time.Second // without an event: older answers are not used without asking again
)

// Maker is who made a token.
type Maker struct {
	ARN         string // as GetCallerIdentity tells it: arn:aws:sts::…:assumed-role/ROLE/SESSION, arn:aws:iam::…:user/…
	Account     string
	UserID      string // AIDA…, AROA… without the session, the account for root
	SessionName string
	// Instance is set if and only if the credentials are those of that instance's own profile.
	Instance *identity.Instance
	// Machine is the machine whose credentials these are, or were before other roles were assumed with them; nil if
	// they began elsewhere.
	Machine *identity.Machine
	// ValidUntil is the end of the token, of the session, or of the answer, whichever comes first. It is never zero.
	ValidUntil time.Time
}

// Verifier knows who made a token. The error of a "no" is *Unknown; after any other error nobody could tell.
type Verifier interface {
	Verify(ctx context.Context, q Question) (Maker, error)
}

// Unknown is a "no": there is no such key, it may not be used now, or it did not make the token. Code is STS's:
// InvalidClientTokenId, ExpiredToken, SignatureDoesNotMatch, AccessDenied.
type Unknown struct {
	Code, Reason string
	// Rule that refused; empty if it is about the access key, whatever token is made with it.
	Rule string
	// Fix is what to do, if the code does not say so.
	Fix string
}

func (u *Unknown) Error() string { return fmt.Sprintf("%s: %s", u.Code, u.Reason) }

// Change is something that ended or came to be. All answers about the named are forgotten, a "no" too.
type Change struct {
	AccessKeyIDs []string `json:"accessKeyIDs,omitempty"` // AKIA…, ASIA…
	UserIDs      []string `json:"userIDs,omitempty"`      // AIDA…, AROA…: all keys and sessions of a user or role
	Instances    []string `json:"instances,omitempty"`    // i-…: all sessions of an instance
	// Sessions stands for all sessions except those of instances' own profiles: nobody knows which sessions were made
	// with a key that ended. The credentials of machines and the access keys of users are not concerned: they stay
	// valid, also while the account is away.
	Sessions bool `json:"sessions,omitempty"`
	All      bool `json:"all,omitempty"`
}

// Empty tells that nothing changed.
func (c Change) Empty() bool {
	return !c.All && !c.Sessions && len(c.AccessKeyIDs) == 0 && len(c.UserIDs) == 0 && len(c.Instances) == 0
}

// Event is one line of the stream. Sequence goes up by one with each event of a connection, from 1; an empty Change is
// a heartbeat. A server that cannot keep up with a client (its buffer is full) tells All, or hangs up; it never leaves
// out a change.
type Event struct {
	Sequence uint64 `json:"sequence"`
	Change
}

// Question asks who made a token: the presigned request in it, byte by byte as it was signed. The server answers in the
// order in which things happened: an answer that was made before a change is on its way before the event of that
// change, or must not be given.
type Question struct {
	// Cluster that the token is said to be for: the value of its signed header x-k8s-aws-id.
	Cluster string `json:"cluster"`
	Host    string `json:"host"`
	Query   string `json:"query"` // a secret
}

// LogValue keeps the request out of logs.
func (q Question) LogValue() slog.Value { return slog.StringValue(q.String()) }

// String keeps the request out of what is printed.
func (q Question) String() string {
	return fmt.Sprintf("question about a token for cluster %.100q", q.Cluster)
}

// GoString keeps the request out of what is printed.
func (q Question) GoString() string { return q.String() }

// Answer is Maker on the wire.
type Answer struct {
	ARN         string    `json:"arn"`
	Account     string    `json:"account"`
	UserID      string    `json:"userID"`
	SessionName string    `json:"sessionName,omitempty"`
	Instance    *Instance `json:"instance,omitempty"`
	Machine     *Machine  `json:"machine,omitempty"`
	ValidUntil  time.Time `json:"validUntil"`
}

// Instance is identity.Instance on the wire.
type Instance struct {
	ID             string `json:"id"`
	PrivateDNSName string `json:"privateDNSName"`
}

// Machine is identity.Machine on the wire.
type Machine struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster,omitempty"`
}

// Refusal is the body of a 404: a "no" that was decided. It is *Unknown on the wire.
type Refusal struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Rule   string `json:"rule,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

// InstanceQuery asks for the credentials of an instance's profile.
type InstanceQuery struct {
	InstanceID string `json:"instanceID"`
}

// RoleCredentials are those of an instance's role, as instance metadata tells them.
type RoleCredentials struct {
	RoleName           string    `json:"roleName"`
	InstanceProfileARN string    `json:"instanceProfileARN"`
	InstanceProfileID  string    `json:"instanceProfileID"`
	AccessKeyID        string    `json:"accessKeyID"`
	SecretAccessKey    string    `json:"secretAccessKey"`
	SessionToken       string    `json:"sessionToken"`
	LastUpdated        time.Time `json:"lastUpdated"`
	Expiration         time.Time `json:"expiration"`
}

// LogValue keeps the secrets out of logs.
func (r RoleCredentials) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String keeps the secrets out of what is printed.
func (r RoleCredentials) String() string {
	return "credentials " + r.AccessKeyID + " of role " + r.RoleName
}

// GoString keeps the secrets out of what is printed.
func (r RoleCredentials) GoString() string { return r.String() }

// AnswerOf puts what is known on the wire.
func AnswerOf(m Maker) Answer {
	a := Answer{ARN: m.ARN, Account: m.Account, UserID: m.UserID, SessionName: m.SessionName, ValidUntil: m.ValidUntil}
	if m.Instance != nil {
		a.Instance = &Instance{ID: m.Instance.ID, PrivateDNSName: m.Instance.PrivateDNSName}
	}
	if m.Machine != nil {
		a.Machine = &Machine{ID: m.Machine.ID, Cluster: m.Machine.Cluster}
	}
	return a
}

// Maker reads an answer, and refuses one that lacks what every answer has.
func (a Answer) Maker() (Maker, error) {
	m := Maker{ARN: a.ARN, Account: a.Account, UserID: a.UserID, SessionName: a.SessionName, ValidUntil: a.ValidUntil}
	if a.ARN == "" || a.Account == "" || a.UserID == "" || a.ValidUntil.IsZero() {
		return Maker{}, errors.New("the answer lacks one of arn, account, userID and validUntil")
	}
	if a.Instance != nil {
		if a.Instance.ID == "" || a.Instance.PrivateDNSName == "" {
			return Maker{}, errors.New("the instance of the answer has no id or no name")
		}
		if a.Machine == nil || a.Machine.ID != a.Instance.ID { // a service of another version says nothing of clusters
			return Maker{}, errors.New("the answer does not say for which cluster its instance was launched")
		}
		m.Instance = &identity.Instance{ID: a.Instance.ID, PrivateDNSName: a.Instance.PrivateDNSName}
	}
	if a.Machine != nil {
		if a.Machine.ID == "" {
			return Maker{}, errors.New("the machine of the answer has no id")
		}
		m.Machine = &identity.Machine{ID: a.Machine.ID, Cluster: a.Machine.Cluster}
	}
	return m, nil
}
