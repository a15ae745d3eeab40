// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
)

// nodeTrust lets instances have the role.
const nodeTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + serviceEC2 + `"},"Action":"sts:AssumeRole"}]}`

// nodeGrants are the policies that EKS gives to the roles of nodes.
func nodeGrants() iam.Grants {
	return iam.Grants{Attached: []string{
		managedPolicy("AmazonEKSWorkerNodePolicy"), managedPolicy("AmazonEC2ContainerRegistryPullOnly"), managedPolicy("AmazonEKS_CNI_Policy"),
	}}
}

// clusterRoleTag is on the role that was made for the nodes of a cluster.
func clusterRoleTag(namespace string) iam.Tag {
	return iam.Tag{Key: "muster.dev/node-role-of", Value: namespace}
}

// ErrForeignRole reports that the name of a cluster's node role belongs to a role that was not made for the cluster. To
// give machines and entries to such a role would be a gift to whoever made it.
var ErrForeignRole = errors.New("a role of that name exists and was not made for the nodes of the cluster")

// MakeClusterNodeRole makes the node role of a cluster, with the policies that EKS gives to nodes, and an instance
// profile of the same name. It goes on with what an earlier call made. In a cluster whose nodes had the account's role
// until now (heir), the new role has the policies that the account's role has at the moment, so that what runs on the
// nodes may do what it did.
func MakeClusterNodeRole(ctx context.Context, store Store, account, namespace string, heir bool, now time.Time) error {
	state, err := store.State()
	if err != nil {
		return err
	}
	if !state.HasAccount(account) {
		return ErrNotReady
	}
	name := v1alpha1.ClusterNodeRole(namespace)
	role, ok := state.Role(account, name)
	switch {
	case ok && madeForCluster(role.Tags, namespace) && role.Trust == nodeTrust:
	case state.taken(nameOf(kindRole, account, name)):
		return ErrForeignRole
	default:
		role = clusterNodeRole(state, account, namespace, heir)
		role.Created = moment(now)
		if role.ID, err = iam.NewID(iam.RolePrefix, rand.Reader); err != nil {
			return err
		}
		if err := store.Create(ctx, role); err != nil {
			return err
		}
	}
	if state.taken(nameOf(kindProfile, account, name)) { // or somebody else's, and the role's has another name: see NodeProfile
		return nil
	}
	profile := iam.InstanceProfile{Account: account, Path: "/", Name: name, RoleID: role.ID, RoleName: name, Created: moment(now), Tags: role.Tags}
	if profile.ID, err = iam.NewID(iam.ProfilePrefix, rand.Reader); err != nil {
		return err
	}
	return store.Create(ctx, profile)
}

func clusterNodeRole(state *State, account, namespace string, heir bool) iam.Role {
	role := iam.Role{
		Account: account, Path: "/", Name: v1alpha1.ClusterNodeRole(namespace), Description: "Machines of cluster " + namespace + " whose node group names no role.",
		Trust: nodeTrust, MaxSession: iam.DefaultRoleSession, Grants: nodeGrants(), Tags: []iam.Tag{clusterRoleTag(namespace)},
	}
	if before, ok := state.Role(account, v1alpha1.AccountNodeRole); ok && heir {
		role.Grants, role.Boundary = iam.Grants{Attached: slices.Clone(before.Attached), Inline: maps.Clone(before.Inline)}, before.Boundary
	}
	return role
}

func madeForCluster(tags []iam.Tag, namespace string) bool {
	return slices.Contains(tags, clusterRoleTag(namespace))
}

// FindClusterNodeRole returns the node role that was made for a cluster, and whether there is one.
func FindClusterNodeRole(store Store, account, namespace string) (role iam.Role, found bool, err error) {
	state, err := store.State()
	if err != nil {
		return iam.Role{}, false, err
	}
	role, found = state.Role(account, v1alpha1.ClusterNodeRole(namespace))
	return role, found && madeForCluster(role.Tags, namespace), nil
}

// RemoveClusterNodeRole removes the node role of a deleted cluster and the instance profiles that were made for it. A
// role that somebody put into a profile of their own stays. The next cluster of that name must not inherit the policies
// of the role.
func RemoveClusterNodeRole(ctx context.Context, store Store, namespace string, role iam.Role) error {
	state, err := store.State()
	if err != nil {
		return err
	}
	profiles := state.ProfilesOf(role.ID)
	if slices.ContainsFunc(profiles, func(p iam.InstanceProfile) bool { return !MadeForNodes(p) && !madeForCluster(p.Tags, namespace) }) {
		return nil
	}
	for _, profile := range profiles {
		if err := store.Delete(ctx, state, profile); err != nil {
			return fmt.Errorf("removing instance profile %s of role %s: %w", profile.Name, role.Name, err)
		}
	}
	if err := store.Delete(ctx, state, role); err != nil {
		return fmt.Errorf("removing role %s: %w", role.Name, err)
	}
	return nil
}
