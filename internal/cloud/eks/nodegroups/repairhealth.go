// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/machine/repair"
)

// repairIssues are the issues of a node group's health about repairs that are paused. EKS has no code for them.
func repairIssues(g *v1alpha1.NodeGroup) []eksresource.Issue {
	status := g.Status.Repair
	if status == nil || !repair.Paused(status.HeldReason) {
		return nil
	}
	issue := eksresource.Issue{Code: "Unknown", Message: "Node auto repair is paused: " + status.HeldMessage}
	for _, m := range status.Machines {
		issue.ResourceIDs = append(issue.ResourceIDs, m.Machine)
	}
	return []eksresource.Issue{issue}
}
