// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/internal/iam/iam"
)

// nodeProfileTag is on the instance profiles that were made for node groups whose role had none. They go when no group
// uses them.
func nodeProfileTag() iam.Tag { return iam.Tag{Key: "muster.dev/made-for", Value: "node groups"} }

// nodeProfilePrefix comes before a role's name if a profile of that name carries another role.
const nodeProfilePrefix = "muster-"

// NodeProfile makes an instance profile that carries a role, as EKS does for a node group: by the role's name, or with
// a prefix if that is taken. A profile of a deleted role gets the new role. A profile of a role that exists is left
// alone, since its machines must not get another role.
func NodeProfile(ctx context.Context, store Store, account, roleID string, now time.Time) (string, error) {
	state, err := store.State()
	if err != nil {
		return "", err
	}
	role, ok := state.RoleByID(roleID)
	if !ok || role.Account != account {
		return "", fmt.Errorf("the role %s is not known to the identity service", roleID)
	}
	for _, name := range []string{role.Name, nodeProfilePrefix + role.Name} {
		if iam.CheckProfileName(name) != nil {
			continue
		}
		profile, ok := state.Profile(account, name)
		if ok && profile.RoleID == role.ID {
			return name, nil
		}
		if _, carries := state.RoleByID(profile.RoleID); ok && !carries && MadeForNodes(profile) {
			profile.RoleID, profile.RoleName = role.ID, role.Name
			return name, store.Update(ctx, state, profile)
		}
		if ok || state.taken(nameOf(kindProfile, account, name)) { // somebody else's
			continue
		}
		profile = iam.InstanceProfile{
			Account: account, Path: "/", Name: name, Created: moment(now), RoleID: role.ID, RoleName: role.Name, Tags: []iam.Tag{nodeProfileTag()},
		}
		if profile.ID, err = iam.NewID(iam.ProfilePrefix, rand.Reader); err != nil {
			return "", err
		}
		return name, store.Create(ctx, profile)
	}
	return "", fmt.Errorf("instance profiles called %[1]s and %[2]s%[1]s carry other roles, or none: put the role %[1]s into one (aws iam add-role-to-instance-profile)", role.Name, nodeProfilePrefix)
}

// MadeForNodes reports whether an instance profile was made by NodeProfile.
func MadeForNodes(p iam.InstanceProfile) bool { return slices.Contains(p.Tags, nodeProfileTag()) }

// RemoveNodeProfiles removes those that NodeProfile made and that nobody uses, and returns their names.
func RemoveNodeProfiles(ctx context.Context, store Store, account string, used func(iam.InstanceProfile) bool) ([]string, error) {
	state, err := store.State()
	if err != nil {
		return nil, err
	}
	var removed []string
	var failed error
	for _, profile := range state.Profiles(account) {
		if !MadeForNodes(profile) || used(profile) {
			continue
		}
		if err := store.Delete(ctx, state, profile); err != nil {
			failed = errors.Join(failed, fmt.Errorf("removing instance profile %s: %w", profile.Name, err))
			continue
		}
		removed = append(removed, profile.Name)
	}
	return removed, failed
}
