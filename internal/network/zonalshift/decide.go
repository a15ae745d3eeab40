// SPDX-License-Identifier: Apache-2.0

package zonalshift

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

// Plan is what a cluster's zonal shifts come to at a moment.
type Plan struct {
	// Active is the shift that is applied; nil if there is none.
	Active *v1alpha1.ZonalShift
	// Ended are shifts that have ended and whose status does not say so.
	Ended []Ending
}

// Ending is how a shift ends.
type Ending struct {
	Shift *v1alpha1.ZonalShift
	Phase v1alpha1.ZonalShiftPhase
	// Message says why, for people.
	Message string
}

// Zones are the names of the zones that the cluster is shifted away from.
func (p Plan) Zones() []string {
	if p.Active == nil {
		return nil
	}
	return []string{p.Active.Spec.AwayFrom}
}

// Decide returns what a cluster's shifts come to. The oldest active shift is applied. A cluster whose spec does not
// enable shifts has none.
func Decide(enabled bool, shifts []v1alpha1.ZonalShift, now time.Time) Plan {
	ordered := make([]*v1alpha1.ZonalShift, 0, len(shifts))
	for i := range shifts {
		ordered = append(ordered, &shifts[i])
	}
	slices.SortFunc(ordered, func(a, b *v1alpha1.ZonalShift) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	var plan Plan
	for _, shift := range ordered {
		ending := Ending{Shift: shift, Phase: shift.PhaseAt(now)}
		switch {
		case ending.Phase == shift.Status.Phase && ending.Phase != v1alpha1.ZonalShiftActive:
			continue
		case ending.Phase == v1alpha1.ZonalShiftExpired:
			ending.Message = "it expired at " + shift.Spec.ExpiryTime.UTC().Format(time.RFC3339)
		case ending.Phase == v1alpha1.ZonalShiftCanceled:
			ending.Message = "it was cancelled"
		case !enabled:
			ending.Phase, ending.Message = v1alpha1.ZonalShiftCanceled, "the cluster has no zonal shifts: its spec.zonalShift.enabled is false"
		case plan.Active != nil:
			ending.Phase, ending.Message = v1alpha1.ZonalShiftCanceled, fmt.Sprintf("zonal shift %s of the cluster was active before it", plan.Active.Name)
		default:
			plan.Active = shift
			continue
		}
		plan.Ended = append(plan.Ended, ending)
	}
	return plan
}
