// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"context"
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostroom"
)

// room is what the host has left for machines of a group, which nobody else is given until it is released. Machines
// without substance need nothing of it.
func (r *groups) room(ctx context.Context, group *v1alpha1.NodeGroup) (*hostroom.Left, error) {
	if !group.Spec.Provider.Can(v1alpha1.RunPods) {
		return (*hostroom.Room)(nil).Hold(ctx, r.managementLive)
	}
	return r.Room.Hold(ctx, r.managementLive)
}

// fit returns as many of the subnets of new machines as the host has room for. Machines that it has no room for are a
// *problem.
func fit(left *hostroom.Left, group *v1alpha1.NodeGroup, subnets []string, short error) ([]string, error) {
	for n := range subnets {
		err := left.Take(group.Spec.Type())
		if err == nil {
			continue
		}
		return subnets[:n], &problem{reason: hostroom.Code, again: roomAgain, message: fmt.Sprintf("%s: the host has no room for %s of type %s: %v. Delete machines, choose a smaller type, or have more memory and processors",
			hostroom.Code, machinesOf(int32(len(subnets)-n)), cmp.Or(group.Spec.Type(), "none"), err)} //nolint:gosec // a group has 5,000 at most
	}
	return subnets, short
}
