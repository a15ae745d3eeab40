// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"slices"

	"muster.dev/muster/api/v1alpha1"
)

// RunsPods reports whether machines of a node group of the cluster run pods.
func (c Cluster) RunsPods() bool {
	return slices.ContainsFunc(c.NodeGroups, func(g NodeGroup) bool { return g.Provider.Can(v1alpha1.RunPods) })
}
