// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// AccountNodeRole is the node role that every account has, for node groups that name it. In earlier versions, node groups of all
	// clusters had it by default.
	AccountNodeRole = "muster-node"

	nodeRolePrefix      = AccountNodeRole + "-"
	karpenterRolePrefix = "muster-karpenter-"
	maxNodeRole         = 64 // characters of a role's name
)

// ClusterNodeRole returns the name of the role that machines of a cluster have if their node group names none. The service makes the role.
// namespace is the cluster's, as [ClusterSlug] returns it. A namespace that is too long for the name of a role is cut, with a hash.
func ClusterNodeRole(namespace string) string { return clusterRole(nodeRolePrefix, namespace) }

// ClusterKarpenterRole returns the name of the role that Karpenter in the control plane of a cluster has. The service makes the role. Namespaces
// are those of [ClusterNodeRole].
func ClusterKarpenterRole(namespace string) string {
	return clusterRole(karpenterRolePrefix, namespace)
}

func clusterRole(prefix, namespace string) string {
	if len(prefix)+len(namespace) <= maxNodeRole {
		return prefix + namespace
	}
	sum := sha256.Sum256([]byte(namespace))
	suffix := slugHash + hex.EncodeToString(sum[:])[:slugDigits]
	return strings.TrimRight((prefix + namespace)[:maxNodeRole-len(suffix)], "-") + suffix
}
