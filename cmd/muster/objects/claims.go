// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/internal/machine/capacity"
)

// tellClaims says before local machines are made what the nodes of all clusters will claim of the host together, if the
// host has less. It says nothing if the other node groups cannot be read: what follows fails then, too, and says why.
func tellClaims(ctx context.Context, talk io.Writer, p *kinds.Client, host capacity.Host, changed ...*v1alpha1.NodeGroup) {
	if !slices.ContainsFunc(changed, func(g *v1alpha1.NodeGroup) bool { return g.Spec.Provider.Can(v1alpha1.RunPods) }) {
		return
	}
	var there v1alpha1.NodeGroupList
	if p.ReadAll(ctx, &there) != nil {
		return
	}
	groups := map[client.ObjectKey]*v1alpha1.NodeGroup{}
	for i := range there.Items {
		groups[client.ObjectKeyFromObject(&there.Items[i])] = &there.Items[i]
	}
	grows := false
	for _, group := range changed {
		key := client.ObjectKeyFromObject(group)
		was := groups[key]
		grows = grows || group.Spec.ScalingConfig.DesiredSize > 0 && (was == nil || group.Spec.ScalingConfig.DesiredSize > was.Spec.ScalingConfig.DesiredSize)
		groups[key] = group
	}
	if !grows {
		return
	}
	for _, group := range groups {
		if group.Spec.Provider.Can(v1alpha1.RunPods) && group.DeletionTimestamp == nil {
			for range group.Spec.ScalingConfig.DesiredSize {
				host.Claim(group.Spec.Type())
			}
		}
	}
	if text := host.WillBeOvercommitted(); text != "" {
		_, _ = fmt.Fprintln(talk, text)
	}
}
