// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"

	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/node/imds"
)

// roleService is what is asked of the identity service.
type roleService interface {
	RoleCredentials(ctx context.Context, instanceID string) (keyservice.RoleCredentials, error)
}

// Roles gets machines the credentials of their roles from the identity service.
type Roles struct{ from roleService }

var _ imds.Credentials = Roles{}

// NewRoles asks a client of the identity service.
func NewRoles(from *keyservice.Client) Roles { return Roles{from: from} }

// Role implements [imds.Credentials].
func (r Roles) Role(ctx context.Context, instanceID string) (imds.Role, error) {
	c, err := r.from.RoleCredentials(ctx, instanceID)
	if no, ok := errors.AsType[*keyservice.Unknown](err); ok {
		return imds.Role{}, fmt.Errorf("%w: %w", imds.ErrNotFound, no)
	}
	if err != nil {
		return imds.Role{}, err
	}
	return imds.Role{
		Name: c.RoleName, ProfileARN: c.InstanceProfileARN, ProfileID: c.InstanceProfileID,
		AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, Token: c.SessionToken,
		LastUpdated: c.LastUpdated, Expiration: c.Expiration,
	}, nil
}

// ForgetOn reports whether a change may be one of a machine's role, so that its credentials must be asked for anew.
func ForgetOn(change keyservice.Change) bool {
	return change.All || len(change.UserIDs) > 0 || len(change.Instances) > 0
}
