// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	// ownBinding is in every cluster of muster's own, where upstream's csrapproving is off (package baseline).
	ownBinding = "muster:node-autoapprove-bootstrap"
	// autoApproveRole is the role whose members csrapproving approves, for any node
	// (pkg/controller/certificates/approver).
	autoApproveRole = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
	// everyToken is a group that all bootstrap tokens are in.
	everyToken = "system:bootstrappers"
)

// ApprovedForAnyNode returns the first binding that has upstream's csrapproving approve a token in these groups for any
// node, "" if there is none, and reports whether the cluster is muster's own.
func ApprovedForAnyNode(bindings []rbacv1.ClusterRoleBinding, groups []string) (binding string, own bool) {
	for _, b := range bindings {
		if b.RoleRef.Name != autoApproveRole {
			continue
		}
		if b.Name == ownBinding {
			own = true
		}
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.GroupKind && binding == "" && (s.Name == everyToken || slices.Contains(groups, s.Name)) {
				binding = b.Name
			}
		}
	}
	return binding, own
}
