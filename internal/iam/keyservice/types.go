// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/sigv4"
)

// Paths of the service. Anything else is 404 without a Refusal, which a client takes for "could not tell".
const (
	PathResolve         = "/v1/resolve"
	PathRoleCredentials = "/v1/role-credentials" //nolint:gosec // G101: a path
	PathChanges         = "/v1/changes"
)

// Bounds that both ends keep.
const (
	MaxQuery  = 16 << 10 // bytes of a request's body; session tokens have at most 4096
	MaxAnswer = 64 << 10 // bytes of an answer, and of one line of the stream
	MaxNamed  = 256      // names in one event; a change of more is told as All

	Heartbeat  = time.Second     // between two events, at most
	StaleAfter = 3 * time.Second // without an event: older answers are not used without asking again
)

// Resolved is what is known of an access key. Key is good for the asked scope alone.
type Resolved struct {
	Key         sigv4.Key
	ARN         string // as GetCallerIdentity tells it: arn:aws:sts::…:assumed-role/ROLE/SESSION, arn:aws:iam::…:user/…
	Account     string
	UserID      string // AIDA…, AROA… without the session, the account for root
	SessionName string
	// Instance is set if and only if these are the credentials of that instance's own profile.
	Instance *identity.Instance
	// ValidUntil is the end of the session, or of the answer if that is earlier. It is never zero.
	ValidUntil time.Time
}

// Keys knows access keys. The error of a "no" is *Unknown; after any other error nobody could tell.
type Keys interface {
	Resolve(ctx context.Context, accessKeyID, sessionToken string, scope sigv4.Scope) (Resolved, error)
}

// Unknown is a "no": there is no such key, or it may not be used now. Code is STS's: InvalidClientTokenId, ExpiredToken, AccessDenied.
type Unknown struct {
	Code, Reason string
}

func (u *Unknown) Error() string { return fmt.Sprintf("%s: %s", u.Code, u.Reason) }

// Change is something that ended or came to be. All answers about the named are forgotten, a "no" too.
type Change struct {
	AccessKeyIDs []string `json:"accessKeyIDs,omitempty"` // AKIA…, ASIA…
	UserIDs      []string `json:"userIDs,omitempty"`      // AIDA…, AROA…: all keys and sessions of a user or role
	Instances    []string `json:"instances,omitempty"`    // i-…: all sessions of an instance
	All          bool     `json:"all,omitempty"`
}

// Empty tells that nothing changed.
func (c Change) Empty() bool {
	return !c.All && len(c.AccessKeyIDs) == 0 && len(c.UserIDs) == 0 && len(c.Instances) == 0
}

// Event is one line of the stream. Sequence goes up by one with each event of a connection, from 1; an empty Change is a heartbeat.
// A server that cannot keep up with a client (its buffer is full) tells All, or hangs up; it never leaves out a change.
type Event struct {
	Sequence uint64 `json:"sequence"`
	Change
}

// Query asks for a key. The server answers in the order in which things happened: an answer that was made before a change is on its
// way before the event of that change, or must not be given.
type Query struct {
	AccessKeyID  string `json:"accessKeyID"`
	SessionToken string `json:"sessionToken,omitempty"` // as the caller sent it, decoded once
	Scope        Scope  `json:"scope"`
}

// Scope is sigv4.Scope on the wire.
type Scope struct {
	Date    string `json:"date"` // 20060102
	Region  string `json:"region"`
	Service string `json:"service"`
}

// LogValue keeps the session token out of logs.
func (q Query) LogValue() slog.Value { return slog.StringValue("query for " + q.AccessKeyID) }

// String keeps the session token out of what is printed.
func (q Query) String() string { return "query for " + q.AccessKeyID }

// GoString keeps the session token out of what is printed.
func (q Query) GoString() string { return q.String() }

// Answer is Resolved on the wire.
type Answer struct {
	Key         []byte    `json:"key"` // 32 bytes
	ARN         string    `json:"arn"`
	Account     string    `json:"account"`
	UserID      string    `json:"userID"`
	SessionName string    `json:"sessionName,omitempty"`
	Instance    *Instance `json:"instance,omitempty"`
	ValidUntil  time.Time `json:"validUntil"`
}

// Instance is identity.Instance on the wire.
type Instance struct {
	ID             string `json:"id"`
	PrivateDNSName string `json:"privateDNSName"`
}

// LogValue keeps the key out of logs.
func (a Answer) LogValue() slog.Value { return slog.StringValue("answer about " + a.ARN) }

// String keeps the key out of what is printed.
func (a Answer) String() string { return "answer about " + a.ARN }

// GoString keeps the key out of what is printed.
func (a Answer) GoString() string { return a.String() }

// Refusal is the body of a 404: a "no" that was decided. It is *Unknown on the wire.
type Refusal struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
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
func AnswerOf(r Resolved) Answer {
	a := Answer{Key: append([]byte(nil), r.Key[:]...), ARN: r.ARN, Account: r.Account, UserID: r.UserID, SessionName: r.SessionName, ValidUntil: r.ValidUntil}
	if r.Instance != nil {
		a.Instance = &Instance{ID: r.Instance.ID, PrivateDNSName: r.Instance.PrivateDNSName}
	}
	return a
}

// Resolved reads an answer, and refuses one that lacks what every answer has.
func (a Answer) Resolved() (Resolved, error) {
	r := Resolved{ARN: a.ARN, Account: a.Account, UserID: a.UserID, SessionName: a.SessionName, ValidUntil: a.ValidUntil}
	switch {
	case len(a.Key) != len(r.Key):
		return Resolved{}, fmt.Errorf("the key has %d bytes, not %d", len(a.Key), len(r.Key))
	case a.ARN == "" || a.Account == "" || a.UserID == "" || a.ValidUntil.IsZero():
		return Resolved{}, fmt.Errorf("the answer lacks one of arn, account, userID and validUntil")
	}
	copy(r.Key[:], a.Key)
	if a.Instance != nil {
		if a.Instance.ID == "" || a.Instance.PrivateDNSName == "" {
			return Resolved{}, fmt.Errorf("the instance of the answer has no id or no name")
		}
		r.Instance = &identity.Instance{ID: a.Instance.ID, PrivateDNSName: a.Instance.PrivateDNSName}
	}
	return r, nil
}

// ScopeOf puts a scope on the wire.
func ScopeOf(s sigv4.Scope) Scope { return Scope{Date: s.Date, Region: s.Region, Service: s.Service} }

// SigV4 reads a scope.
func (s Scope) SigV4() sigv4.Scope {
	return sigv4.Scope{Date: s.Date, Region: s.Region, Service: s.Service}
}
