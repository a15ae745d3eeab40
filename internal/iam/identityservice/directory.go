// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/iampolicy"
)

var _ iampolicy.Directory = (*State)(nil)

// HasAccount reports whether there is such an account.
func (s *State) HasAccount(account string) bool { _, ok := s.accounts[account]; return ok }

// UserID finds the unique id of a user.
func (s *State) UserID(account, path, name string) (string, bool) {
	u, ok := s.User(account, name)
	return u.ID, ok && (path == "" || path == u.Path)
}

// RoleID finds the unique id of a role.
func (s *State) RoleID(account, path, name string) (string, bool) {
	r, ok := s.Role(account, name)
	return r.ID, ok && (path == "" || path == r.Path)
}

// ARNOf names a user or role.
func (s *State) ARNOf(id string) (arn.ARN, bool) {
	if u, ok := s.users[id]; ok {
		return u.ARN(), true
	}
	r, ok := s.roles[id]
	return r.ARN(), ok
}
