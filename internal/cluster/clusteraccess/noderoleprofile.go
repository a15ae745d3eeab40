// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/nodegroup"
)

// makeProfile makes the instance profile of a role that has none, as EKS does for a node group.
func (n *NodeRoles) makeProfile(ctx context.Context, role *v1alpha1.IAMRole) (string, error) {
	store := n.store()
	if store == nil {
		return "", identityservice.ErrNotReady
	}
	name, err := identityservice.NodeProfile(ctx, store, identityservice.DefaultAccount, role.Spec.RoleID, n.now())
	switch {
	case err == nil:
		return name, nil
	case errors.Is(err, identityservice.ErrNotReady), errors.Is(err, identityservice.ErrConflict), errors.Is(err, identityservice.ErrDeleted), errors.Is(err, identityservice.ErrExists):
		return "", fmt.Errorf("making an instance profile for role %s: %w", role.Spec.Name, err) // it is tried again
	}
	return "", &nodegroup.RoleProblem{Reason: reasonNoProfile, Message: fmt.Sprintf("no instance profile carries the role %s, and none can be made: %v", role.Spec.Name, err)}
}

// Tidy implements [nodegroup.NodeRoles]. It asks the management plane itself: a cache may not know yet of a group that
// was just made.
func (n *NodeRoles) Tidy(ctx context.Context) error {
	store := n.store()
	if store == nil {
		return identityservice.ErrNotReady
	}
	n.preparing.Lock()
	defer n.preparing.Unlock()
	var groups v1alpha1.NodeGroupList
	if err := n.management.List(ctx, &groups); err != nil {
		return fmt.Errorf("listing NodeGroups for their roles: %w", err)
	}
	roles := map[string]bool{}
	for i := range groups.Items {
		if name := groups.Items[i].Role(); name != "" {
			role, err := n.role(ctx, name)
			if err == nil {
				roles[role.Spec.RoleID] = true
			} else if _, gone := errors.AsType[*nodegroup.RoleProblem](err); !gone {
				return err
			}
		}
	}
	if err := n.podRoles(ctx, roles); err != nil {
		return err
	}
	if err := n.computeRoles(ctx, roles); err != nil {
		return err
	}
	var machines v1alpha1.MachineList
	if err := n.management.List(ctx, &machines); err != nil {
		return fmt.Errorf("listing Machines for their instance profiles: %w", err)
	}
	profiles := map[string]bool{}
	for i := range machines.Items {
		profiles[machines.Items[i].Spec.InstanceProfile] = true
	}
	_, err := identityservice.RemoveNodeProfiles(ctx, store, identityservice.DefaultAccount, func(p iam.InstanceProfile) bool {
		return roles[p.RoleID] || profiles[p.Name]
	})
	return err
}
