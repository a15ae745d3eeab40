// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/nodegroup"
)

const (
	// firstMode remembers by which sort of entry the first ones were let in.
	firstMode = "authenticationMode"
	// nodeUsername is what nodes are called where an entry says so itself.
	nodeUsername = "system:node:{{EC2PrivateDNSName}}"
)

// moved gives those access entries who were let in by IAMIdentityMapping objects, when the mode comes to know access entries: the creator
// and the roles of nodes, whom the mode API would shut out otherwise. Whose mapping somebody has deleted stays out.
func (a access) moved(ctx context.Context, done *corev1.ConfigMap) error {
	if a.mode == v1alpha1.AuthenticationConfigMap || done.Data[firstMode] != string(v1alpha1.AuthenticationConfigMap) {
		return nil
	}
	var mappings iamv1alpha1.IAMIdentityMappingList
	if err := a.cluster.List(ctx, &mappings); err != nil {
		return fmt.Errorf("listing IAMIdentityMappings: %w", err)
	}
	for _, mapping := range mappings.Items {
		if err := a.move(ctx, mapping.Name, mapping.Spec); err != nil {
			return err
		}
	}
	done.Data[firstMode] = string(a.mode)
	if err := a.cluster.Update(ctx, done); err != nil {
		return fmt.Errorf("writing down that the first ones have access entries: %w", err)
	}
	return nil
}

func (a access) move(ctx context.Context, name string, spec iamv1alpha1.IAMIdentityMappingSpec) error {
	switch {
	case name == creatorEntry:
		if err := a.creator(ctx); !errors.Is(err, errNoUser) { // he may be deleted by now
			return err
		}
	case spec.Username == nodeUsername:
		role, err := a.role(ctx, spec.ARN)
		if _, gone := errors.AsType[*nodegroup.RoleProblem](err); gone {
			return nil
		}
		if err != nil {
			return err
		}
		return a.nodes(ctx, role)
	}
	return nil
}
