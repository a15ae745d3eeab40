// SPDX-License-Identifier: Apache-2.0

package zonalshiftcontroller

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/zonalshift"
)

// page is how many slices are read at once.
const page = 500

// slices writes each slice again that is not as the zones say, once the API server follows the policy, and counts those
// whose answer shows that another one does not yet, or still does. Without zones it looks at marked slices alone.
func (r *reconciler) slices(ctx context.Context, zones []string, found *seen) error {
	chosen := client.ListOption(client.HasLabels{v1alpha1.LabelZonalShift})
	if len(zones) > 0 {
		probe := zonalshift.Probe(zones[0])
		if err := r.API.Create(ctx, probe, client.DryRunAll); err != nil {
			return fmt.Errorf("asking whether the API server follows the policy: %w", err)
		}
		if probe.Labels[v1alpha1.LabelZonalShift] == "" {
			found.pending++ // a slice that is written now would stay as it is
			return nil
		}
		chosen = client.MatchingLabels{discoveryv1.LabelManagedBy: zonalshift.ManagedBy}
	}
	var all []discoveryv1.EndpointSlice
	next := ""
	for {
		var list discoveryv1.EndpointSliceList
		if err := r.API.List(ctx, &list, chosen, client.Limit(page), client.Continue(next)); err != nil {
			return fmt.Errorf("listing EndpointSlices: %w", err)
		}
		all = append(all, list.Items...)
		if next = list.Continue; next == "" {
			break
		}
	}
	for i := range all {
		slice := &all[i]
		patch := zonalshift.Patch(slice, zones)
		if patch == nil {
			continue
		}
		found.changed = true
		answer := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: slice.Name}}
		if err := r.API.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("writing EndpointSlice %s/%s: %w", slice.Namespace, slice.Name, err)
		}
		if all[i] = *answer; zonalshift.Patch(answer, zones) != nil {
			found.pending++
		}
	}
	found.stranded = zonalshift.Stranded(all, zones)
	return nil
}
