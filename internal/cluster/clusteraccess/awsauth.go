// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// awsAuth is the ConfigMap by which clusters of EKS in the mode CONFIG_MAP let IAM's users and roles in.
const awsAuth = "aws-auth"

// awsAuthFirst makes the ConfigMap aws-auth in a cluster that has none, with the role of its first node group, as EKS
// does: people and tools look for it and edit it. An existing aws-auth is not changed. Nodes do not depend on it, since
// their role has an entry of its own.
func (a Access) awsAuthFirst(ctx context.Context, role *v1alpha1.IAMRole) error {
	if a.mode != v1alpha1.AuthenticationConfigMap {
		return nil
	}
	// A role's ARN has no path in aws-auth.
	roles := fmt.Sprintf("- groups:\n  - system:bootstrappers\n  - system:nodes\n  rolearn: arn:aws:iam::%s:role/%s\n  username: %s\n", role.Spec.Account, role.Spec.Name, nodeUsername)
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: awsAuth}, Data: map[string]string{"mapRoles": roles}}
	if err := a.cluster.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making ConfigMap %s: %w", awsAuth, err)
	}
	return nil
}
