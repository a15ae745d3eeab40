// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/nodegroup"
)

const (
	// firstMode is the key of the authentication mode in which the first entries were made.
	firstMode = "authenticationMode"
	// nodeUsername is the user name of nodes in an IAMIdentityMapping.
	nodeUsername = "system:node:{{EC2PrivateDNSName}}"
)

// moved makes access entries for the creator and the roles of nodes that have IAMIdentityMapping objects, when the
// authentication mode begins to read access entries: the mode API would shut them out otherwise. A principal whose
// mapping was deleted gets no entry.
func (a Access) moved(ctx context.Context, done *corev1.ConfigMap) error {
	if a.mode == v1alpha1.AuthenticationConfigMap || done.Data[firstMode] != string(v1alpha1.AuthenticationConfigMap) {
		return nil
	}
	var mappings iamv1alpha1.IAMIdentityMappingList
	if err := a.cluster.List(ctx, &mappings); err != nil {
		return fmt.Errorf("listing IAMIdentityMappings to move: %w", err)
	}
	for _, mapping := range mappings.Items {
		if err := a.move(ctx, mapping.Name, mapping.Spec); err != nil {
			return err
		}
	}
	done.Data[firstMode] = string(a.mode)
	return a.change(ctx, done)
}

func (a Access) move(ctx context.Context, name string, spec iamv1alpha1.IAMIdentityMappingSpec) error {
	switch {
	case name == creatorEntry:
		if err := a.creator(ctx); !errors.Is(err, errNoUser) { // the user may be deleted by now
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
