// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"cmp"
	"slices"
	"strings"

	"muster.dev/muster/internal/iam/iam"
)

type kind byte

const (
	kindUser kind = iota + 1
	kindRole
	kindProfile
	kindPolicy
	kindProvider
)

// nameKey tells one name of a kind in an account. Names that differ in capitals only are one name, as in IAM.
type nameKey struct {
	kind          kind
	account, name string
}

func nameOf(k kind, account, name string) nameKey { return nameKey{k, account, strings.ToLower(name)} }

// State is everything that is known at a moment. It is immutable, and so is what it gives away: copy before changing.
type State struct {
	accounts map[string]iam.Account
	users    map[string]iam.User
	keys     map[string]iam.AccessKey
	roles    map[string]iam.Role
	profiles map[string]iam.InstanceProfile
	policies map[string]iam.Policy
	// providers are told by their ARNs: IAM gives them no unique ids.
	providers map[string]iam.OIDCProvider

	names      map[nameKey]string  // to the unique id
	keysOf     map[string][]string // of a user's unique id, the oldest first
	profilesOf map[string][]string // of a role's unique id, by name
	revisions  map[string]string   // of the unique id
}

// Held is an entity with what its store knows its version by.
type Held struct {
	Entity   Entity
	Revision string
}

// NewState is for stores: it puts entities together. Of two with one id or name the first one counts; the caller has
// made sure that there are none.
func NewState(entities []Held) *State {
	s := &State{
		accounts: map[string]iam.Account{}, users: map[string]iam.User{}, keys: map[string]iam.AccessKey{}, roles: map[string]iam.Role{},
		profiles: map[string]iam.InstanceProfile{}, policies: map[string]iam.Policy{}, providers: map[string]iam.OIDCProvider{},
		names: map[nameKey]string{}, keysOf: map[string][]string{}, profilesOf: map[string][]string{}, revisions: map[string]string{},
	}
	for _, h := range entities {
		key, unique := ID(h.Entity), name(h.Entity)
		if _, twice := s.revisions[key]; twice {
			continue
		}
		if _, twice := s.names[unique]; twice {
			continue
		}
		s.names[unique], s.revisions[key] = key, h.Revision
		switch e := h.Entity.(type) {
		case iam.Account:
			s.accounts[key] = e
		case iam.User:
			s.users[key] = e
		case iam.AccessKey:
			s.keys[key] = e
			s.keysOf[e.UserID] = append(s.keysOf[e.UserID], key)
		case iam.Role:
			s.roles[key] = e
		case iam.InstanceProfile:
			s.profiles[key] = e
			if e.RoleID != "" {
				s.profilesOf[e.RoleID] = append(s.profilesOf[e.RoleID], key)
			}
		case iam.Policy:
			s.policies[key] = e
		case iam.OIDCProvider:
			s.providers[key] = e
		}
	}
	for key, e := range s.keys { // the name of today, whatever it was when the key was made
		e.UserName = s.users[e.UserID].Name
		s.keys[key] = e
	}
	for _, ids := range s.keysOf {
		slices.SortFunc(ids, func(a, b string) int {
			return cmp.Or(s.keys[a].Created.Compare(s.keys[b].Created), strings.Compare(a, b))
		})
	}
	for _, ids := range s.profilesOf {
		slices.SortFunc(ids, func(a, b string) int { return strings.Compare(s.profiles[a].Name, s.profiles[b].Name) })
	}
	return s
}

// Revision returns what the store knows the version of an entity by, "" if the state has none of its id.
func (s *State) Revision(e Entity) string { return s.revisions[ID(e)] }

// Namesake finds the entity that has the name of another, or is it, and returns its id.
func (s *State) Namesake(e Entity) (id string, ok bool) { id, ok = s.names[name(e)]; return id, ok }

// Account finds an account by its id.
func (s *State) Account(id string) (iam.Account, bool) { a, ok := s.accounts[id]; return a, ok }

// User finds a user by name, capitals included.
func (s *State) User(account, name string) (iam.User, bool) {
	u, ok := s.users[s.names[nameOf(kindUser, account, name)]]
	return u, ok && u.Name == name
}

// UserByID finds a user by unique id.
func (s *State) UserByID(id string) (iam.User, bool) { u, ok := s.users[id]; return u, ok }

// Key finds an access key.
func (s *State) Key(id string) (iam.AccessKey, bool) { k, ok := s.keys[id]; return k, ok }

// KeysOf are the access keys of a user, the oldest first.
func (s *State) KeysOf(userID string) []iam.AccessKey {
	keys := make([]iam.AccessKey, 0, len(s.keysOf[userID]))
	for _, id := range s.keysOf[userID] {
		keys = append(keys, s.keys[id])
	}
	return keys
}

// Role finds a role by name, capitals included.
func (s *State) Role(account, name string) (iam.Role, bool) {
	r, ok := s.roles[s.names[nameOf(kindRole, account, name)]]
	return r, ok && r.Name == name
}

// RoleByID finds a role by unique id.
func (s *State) RoleByID(id string) (iam.Role, bool) { r, ok := s.roles[id]; return r, ok }

// Profile finds an instance profile by name, capitals included.
func (s *State) Profile(account, name string) (iam.InstanceProfile, bool) {
	p, ok := s.profiles[s.names[nameOf(kindProfile, account, name)]]
	return p, ok && p.Name == name
}

// ProfilesOf are the instance profiles that carry a role, by name.
func (s *State) ProfilesOf(roleID string) []iam.InstanceProfile {
	profiles := make([]iam.InstanceProfile, 0, len(s.profilesOf[roleID]))
	for _, id := range s.profilesOf[roleID] {
		profiles = append(profiles, s.profiles[id])
	}
	return profiles
}

// Policy finds a managed policy of an account by name, capitals included.
func (s *State) Policy(account, name string) (iam.Policy, bool) {
	p, ok := s.policies[s.names[nameOf(kindPolicy, account, name)]]
	return p, ok && p.Name == name
}

// Provider finds an OpenID Connect provider by its ARN.
func (s *State) Provider(arn string) (iam.OIDCProvider, bool) {
	p, ok := s.providers[arn]
	return p, ok
}

// taken reports whether a name is in use, whatever its capitals.
func (s *State) taken(k nameKey) bool { _, ok := s.names[k]; return ok }

// Users of an account, by name.
func (s *State) Users(account string) []iam.User {
	return sorted(s.users, func(u iam.User) bool { return u.Account == account }, func(u iam.User) string { return u.Name })
}

// Roles of an account, by name.
func (s *State) Roles(account string) []iam.Role {
	return sorted(s.roles, func(r iam.Role) bool { return r.Account == account }, func(r iam.Role) string { return r.Name })
}

// Profiles of an account, by name.
func (s *State) Profiles(account string) []iam.InstanceProfile {
	return sorted(s.profiles, func(p iam.InstanceProfile) bool { return p.Account == account }, func(p iam.InstanceProfile) string { return p.Name })
}

// Policies of an account, by name.
func (s *State) Policies(account string) []iam.Policy {
	return sorted(s.policies, func(p iam.Policy) bool { return p.Account == account }, func(p iam.Policy) string { return p.Name })
}

// Providers are the OpenID Connect providers of an account, by URL.
func (s *State) Providers(account string) []iam.OIDCProvider {
	return sorted(s.providers, func(p iam.OIDCProvider) bool { return p.Account == account }, func(p iam.OIDCProvider) string { return p.URL })
}

func sorted[T any](from map[string]T, want func(T) bool, by func(T) string) []T {
	var out []T
	for _, e := range from {
		if want(e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b T) int { return strings.Compare(by(a), by(b)) })
	return out
}
