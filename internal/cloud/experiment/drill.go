// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// Drill returns the drill that an instance is to have in place of the one of its spec; nil if that stays. It reports
// whether the experiment has nothing to do with the instance any more. The action began at a time, and interrupts the
// instance a while after that.
func Drill(spec *v1alpha1.MachineDrill, status *v1alpha1.MachineDrillStatus, began time.Time, lasts time.Duration, now time.Time) (wanted *v1alpha1.MachineDrill, over bool) {
	warned := began.Add(lasts - notice)
	has := Own(spec, began)
	switch {
	case spec != nil && !has && !spec.Began.Time.Before(began): // somebody's own
		return nil, true
	case spec == nil && status != nil && !status.Began.Time.Before(began): // somebody ended it
		return nil, true
	case has && spec.Kind == v1alpha1.DrillSpotInterruption:
		return nil, status != nil && status.EndedAt != nil && status.Began.Equal(&spec.Began)
	case now.Before(warned) && has:
		return nil, false
	case now.Before(warned):
		return at(v1alpha1.DrillRebalance, now, warned), false
	}
	return at(v1alpha1.DrillSpotInterruption, now, now.Add(notice)), false
}

// Own reports whether a drill is that of an action that began at a time.
func Own(spec *v1alpha1.MachineDrill, began time.Time) bool {
	if spec == nil || spec.Began.Time.Before(began) {
		return false
	}
	return spec.Kind == v1alpha1.DrillSpotInterruption || spec.Kind == v1alpha1.DrillRebalance
}

// at is a drill between two times. Its end is in whole seconds, and not earlier than the time.
func at(kind v1alpha1.DrillKind, began, ends time.Time) *v1alpha1.MachineDrill {
	return &v1alpha1.MachineDrill{
		Kind: kind, Began: metav1.NewMicroTime(began.Truncate(time.Microsecond)), Ends: metav1.NewTime(ends.Add(time.Second - 1).Truncate(time.Second)),
	}
}
