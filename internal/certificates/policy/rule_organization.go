// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

const nodesGroup = "system:nodes"

// checkOrganization refuses every group but system:nodes: the API server takes each organization of a client
// certificate for a group, and one more, such as system:masters, would be all there is to win.
func checkOrganization(e evaluation) outcome {
	if !e.profile.Node {
		return notApplicable(notANode)
	}
	if o := e.request.CSR.Organization(); !slices.Equal(o, []string{nodesGroup}) {
		return refuse("it must be exactly "+nodesGroup, "the organization is %q", o)
	}
	return pass("%s", nodesGroup)
}
