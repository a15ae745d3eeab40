// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/nodegroup"
)

// Keys of the record.
const (
	// ownRole is the ARN of the cluster's own node role, once the role and its entry were made.
	ownRole = "clusterNodeRole"
	// formerRole is the ARN of the account's node role in a cluster of an earlier version, whose nodes had it by
	// default, until its entry is removed.
	formerRole = "nodeRole"
)

// ownNodes makes the node role of a cluster of an earlier version and the entry of that role. Node groups without a
// role give it to new machines from now on; machines that run keep the account's role, whose entry stays until
// [NodeRoles.Leave].
func (a Access) ownNodes(ctx context.Context, record *corev1.ConfigMap) error {
	if record.Data[ownRole] != "" {
		return nil
	}
	role, err := a.makeOwnRole(ctx, true)
	if err != nil {
		return err
	}
	if err := a.nodes(ctx, role); err != nil {
		return err
	}
	if record.Data == nil {
		record.Data = map[string]string{}
	}
	record.Data[ownRole] = role.Spec.ARN
	return a.change(ctx, record)
}

// groupRole finds the role of a node group. The cluster's own is made if this was not done before; a role that somebody
// deleted is not made again.
func (a Access) groupRole(ctx context.Context, name string) (*v1alpha1.IAMRole, error) {
	if name != v1alpha1.ClusterNodeRole(a.namespace) {
		return a.role(ctx, name)
	}
	record, there, err := a.record(ctx)
	if err != nil {
		return nil, err
	}
	if record.Data[ownRole] != "" {
		return a.role(ctx, name)
	}
	return a.makeOwnRole(ctx, there)
}

// makeOwnRole makes the node role of the cluster, or finds the one that an earlier call made.
func (a Access) makeOwnRole(ctx context.Context, heir bool) (*v1alpha1.IAMRole, error) {
	name := v1alpha1.ClusterNodeRole(a.namespace)
	store := a.store()
	if store == nil {
		return nil, nodegroup.ErrNotYet
	}
	err := identityservice.MakeClusterNodeRole(ctx, store, identityservice.DefaultAccount, a.namespace, heir, a.now())
	switch {
	case errors.Is(err, identityservice.ErrNotReady), errors.Is(err, identityservice.ErrExists): // another part of the service makes it at the moment
		return nil, fmt.Errorf("%w: %w", nodegroup.ErrNotYet, err)
	case errors.Is(err, identityservice.ErrForeignRole):
		return nil, &nodegroup.RoleProblem{Reason: reasonNoRole, Message: fmt.Sprintf("the cluster's own node role %[1]s cannot be made: %[2]v; "+
			"delete that role (aws iam delete-role --role-name %[1]s), or name a role in spec.nodeRole", name, err)}
	case err != nil:
		return nil, fmt.Errorf("making the node role %s: %w", name, err)
	}
	return a.role(ctx, name)
}

// RemoveOwnRole removes the node role of a deleted cluster, unless machines or node groups of another cluster have it.
func RemoveOwnRole(ctx context.Context, management client.Reader, store identityservice.Store, namespace string) error {
	if store == nil {
		return identityservice.ErrNotReady
	}
	role, found, err := identityservice.FindClusterNodeRole(store, identityservice.DefaultAccount, namespace)
	if err != nil || !found {
		return err
	}
	why, err := uses(ctx, management, &v1alpha1.IAMRoleSpec{
		IAMName: v1alpha1.IAMName{Account: role.Account, Name: role.Name, ARN: role.ARN().String()}, RoleID: role.ID,
	}, func(string) bool { return true })
	if err != nil || why != "" {
		return err
	}
	return identityservice.RemoveClusterNodeRole(ctx, store, namespace, role)
}
