// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"fmt"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
	"muster.dev/muster/internal/machine/nodegroup"
)

// PrepareFargate returns the name of the instance profile that gives machines of Fargate their pod execution role, an ARN,
// and makes the entry by which the cluster takes machines with the role for nodes, of type FARGATE_LINUX. The error is a
// *fargate.RoleProblem if the role cannot be used.
func (n *NodeRoles) PrepareFargate(ctx context.Context, arn string) (string, error) {
	profile, err := n.prepareFargate(ctx, arn)
	if problem, ok := errors.AsType[*nodegroup.RoleProblem](err); ok {
		err = &fargate.RoleProblem{Reason: v1alpha1.ReasonPodExecutionRole, Message: problem.Message}
	}
	return profile, err
}

func (n *NodeRoles) prepareFargate(ctx context.Context, arn string) (string, error) {
	n.preparing.Lock()
	defer n.preparing.Unlock()
	role, err := n.role(ctx, arn)
	if err != nil {
		return "", err
	}
	profile, err := n.profile(ctx, role)
	if problem, ok := errors.AsType[*nodegroup.RoleProblem](err); ok && problem.Reason == reasonNoProfile {
		profile, err = n.makeProfile(ctx, role)
	}
	if err != nil {
		return "", err
	}
	err = n.pods(ctx, role)
	if errors.Is(err, errMeanwhile) { // it is found now
		err = n.pods(ctx, role)
	}
	return profile, err
}

// pods makes the entry that lets machines of Fargate with a role in. A role that lets other machines in is refused: their
// nodes are named after instances, and not after sessions.
func (a Access) pods(ctx context.Context, role *v1alpha1.IAMRole) error {
	name := entryName(role.Spec.Name)
	if a.mode == v1alpha1.AuthenticationConfigMap {
		return a.podsByMapping(ctx, name, role)
	}
	spec := accessv1alpha1.AccessEntrySpec{PrincipalARN: role.Spec.ARN, PrincipalID: role.Spec.RoleID, Type: accessv1alpha1.TypeFargateLinux}
	if err := a.enter(ctx, name, spec); err != nil {
		return err
	}
	var entries accessv1alpha1.AccessEntryList
	if err := a.cluster.List(ctx, &entries); err != nil {
		return fmt.Errorf("listing access entries: %w", err)
	}
	for _, entry := range entries.Items {
		if entry.Spec.PrincipalARN == spec.PrincipalARN && entry.Spec.Type != spec.Type {
			return &fargate.RoleProblem{Reason: v1alpha1.ReasonPodExecutionRoleInUse, Message: fmt.Sprintf(
				"the role %s has the access entry %s of type %s: a pod execution role needs one of type %s; delete that entry, or give the profile a role of its own",
				role.Spec.ARN, entry.Name, entry.Spec.Type, spec.Type)}
		}
	}
	return nil
}

// podsByMapping is pods for a cluster that reads no access entries.
func (a Access) podsByMapping(ctx context.Context, name string, role *v1alpha1.IAMRole) error {
	err := a.mapping(ctx, name, iamv1alpha1.IAMIdentityMappingSpec{
		ARN: role.Spec.ARN, Username: "system:node:{{SessionName}}", Groups: []string{"system:bootstrappers", "system:nodes", "system:node-proxier"},
	})
	if err != nil {
		return err
	}
	var mappings iamv1alpha1.IAMIdentityMappingList
	if err := a.cluster.List(ctx, &mappings); err != nil {
		return fmt.Errorf("listing IAMIdentityMappings: %w", err)
	}
	for _, mapping := range mappings.Items {
		if mapping.Spec.ARN == role.Spec.ARN && mapping.Spec.Username == nodeUsername {
			return &fargate.RoleProblem{Reason: v1alpha1.ReasonPodExecutionRoleInUse, Message: fmt.Sprintf(
				"the role %s has the IAMIdentityMapping %s, which names nodes after instances: delete that, or give the profile a role of its own", role.Spec.ARN, mapping.Name)}
		}
	}
	return nil
}

// podRoles adds the ids of the roles that Fargate profiles name.
func (n *NodeRoles) podRoles(ctx context.Context, roles map[string]bool) error {
	var profiles v1alpha1.FargateProfileList
	if err := n.management.List(ctx, &profiles); err != nil {
		return fmt.Errorf("listing FargateProfiles for their roles: %w", err)
	}
	for i := range profiles.Items {
		role, err := n.role(ctx, profiles.Items[i].Spec.PodExecutionRoleARN)
		if err == nil {
			roles[role.Spec.RoleID] = true
		} else if _, gone := errors.AsType[*nodegroup.RoleProblem](err); !gone {
			return err
		}
	}
	return nil
}
