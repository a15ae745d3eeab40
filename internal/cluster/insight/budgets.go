// SPDX-License-Identifier: Apache-2.0

package insight

import "fmt"

// budgets looks for PodDisruptionBudgets that never let a pod go. An upgrade of the control plane drains no node, so it is
// a warning: the update of a node group that follows would wait for them.
func budgets(f Facts) Insight {
	i := Insight{
		Name: "Pod disruption budgets that block drains", Category: UpgradeReadiness, Minor: f.Next,
		Description:    "Looks for PodDisruptionBudgets that let no pod be evicted, even if all of its pods are healthy",
		Recommendation: "Let at least one pod be evicted, by minAvailable or maxUnavailable, or run one pod more, before node groups are updated",
	}
	if f.Budgets.Unknown != "" {
		return i.unknown(f.Budgets.Unknown)
	}
	var resources []Resource
	for _, b := range f.Budgets.Is {
		if b.Pods > 0 && b.Allowed <= 0 {
			resources = append(resources, Resource{Finding{Warning, fmt.Sprintf("The budget lets none of its %d pods be evicted", b.Pods)}, b.URI})
		}
	}
	return i.of(resources, "Each budget lets pods be evicted", fmt.Sprintf("%d of %d budgets let no pod be evicted", len(resources), len(f.Budgets.Is)))
}
