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

	nodeRolePrefix = AccountNodeRole + "-"
	maxNodeRole    = 64 // characters of a role's name
)

// ClusterNodeRole returns the name of the role that machines of a cluster have if their node group names none. The service makes the role.
// namespace is the cluster's, as [ClusterSlug] returns it. A namespace that is too long for the name of a role is cut, with a hash.
func ClusterNodeRole(namespace string) string {
	if len(nodeRolePrefix)+len(namespace) <= maxNodeRole {
		return nodeRolePrefix + namespace
	}
	sum := sha256.Sum256([]byte(namespace))
	suffix := slugHash + hex.EncodeToString(sum[:])[:slugDigits]
	return strings.TrimRight((nodeRolePrefix + namespace)[:maxNodeRole-len(suffix)], "-") + suffix
}
