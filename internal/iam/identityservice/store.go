// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"

	"muster.dev/muster/internal/iam/iam"
)

// Entity is one of iam.Account, iam.User, iam.AccessKey, iam.Role, iam.InstanceProfile, iam.Policy and
// iam.OIDCProvider, by value.
type Entity any

// Store keeps entities. Writes are one entity each, whole or not at all.
type Store interface {
	// State is what is known now. It never blocks and the value never changes; the error is ErrNotReady.
	State() (*State, error)
	// Changed gives a channel on which a value comes after State has changed; stop takes it back. Changes may be told
	// as one.
	Changed() (changed <-chan struct{}, stop func())

	// Create keeps a new entity; ErrExists if one of that name is there.
	Create(ctx context.Context, e Entity) error
	// Update replaces an entity that was read from that state; ErrConflict if it has changed since,
	// ErrDeleted if it is gone.
	Update(ctx context.Context, from *State, e Entity) error
	// Delete removes an entity that was read from that state; ErrConflict if it has changed since. It is not an error
	// if the entity is gone.
	Delete(ctx context.Context, from *State, e Entity) error
}

// The errors of a write.
var (
	ErrExists   = errors.New("an entity of that name exists")
	ErrConflict = errors.New("the entity was changed meanwhile")
	ErrDeleted  = errors.New("the entity was deleted meanwhile")
	// ErrNotReady means that nothing is known yet: the store has not been read.
	ErrNotReady = errors.New("the management plane has not been read yet")
	// errAway means that the management plane did not answer, and nobody knows whether it wrote.
	errAway = errors.New("writing to the management plane")
)

// ID identifies an entity: forever, but for providers, whose ARN it is.
func ID(e Entity) string {
	switch e := e.(type) {
	case iam.Account:
		return e.ID
	case iam.User:
		return e.ID
	case iam.AccessKey:
		return e.ID
	case iam.Role:
		return e.ID
	case iam.InstanceProfile:
		return e.ID
	case iam.Policy:
		return e.ID
	case iam.OIDCProvider:
		return e.ARN().String()
	}
	return ""
}

// name is what an entity is told by among the living: kind, account and name, whose capitals do not count. Keys and
// accounts have none but their id.
func name(e Entity) nameKey {
	switch e := e.(type) {
	case iam.User:
		return nameOf(kindUser, e.Account, e.Name)
	case iam.Role:
		return nameOf(kindRole, e.Account, e.Name)
	case iam.InstanceProfile:
		return nameOf(kindProfile, e.Account, e.Name)
	case iam.Policy:
		return nameOf(kindPolicy, e.Account, e.Name)
	case iam.OIDCProvider:
		return nameOf(kindProvider, e.Account, e.URL)
	}
	return nameKey{name: ID(e)}
}

// arnOf names an entity; keys have none.
func arnOf(e Entity) string {
	switch e := e.(type) {
	case iam.Account:
		return e.RootARN().String()
	case iam.User:
		return e.ARN().String()
	case iam.Role:
		return e.ARN().String()
	case iam.InstanceProfile:
		return e.ARN().String()
	case iam.Policy:
		return e.ARN().String()
	case iam.OIDCProvider:
		return e.ARN().String()
	}
	return ""
}
