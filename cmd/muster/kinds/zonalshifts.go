// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// ZonalShifts is the kind ZonalShift, which "muster zonal-shift list" shows.
func ZonalShifts() Kind {
	message := col(HeadingMessage, func(s *v1alpha1.ZonalShift) string {
		if is := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionApplied); is != nil {
			return is.Message
		}
		return ""
	})
	message.ifAny = true
	return Kind{
		Singular: "zonalshift", Plural: "zonalshifts", group: v1alpha1.GroupVersion.Group,
		List: func() client.ObjectList { return &v1alpha1.ZonalShiftList{} },
		columns: []column{
			columnName(),
			col(headingCluster, func(s *v1alpha1.ZonalShift) string { return s.Spec.ClusterName }),
			col("AWAY-FROM", func(s *v1alpha1.ZonalShift) string { return s.Spec.AwayFrom }),
			{heading: "STATUS", cell: func(object client.Object, now time.Time) string {
				return string(object.(*v1alpha1.ZonalShift).PhaseAt(now))
			}},
			{heading: "EXPIRES-IN", cell: func(object client.Object, now time.Time) string {
				if s := object.(*v1alpha1.ZonalShift); s.PhaseAt(now) == v1alpha1.ZonalShiftActive {
					return duration.HumanDuration(s.Spec.ExpiryTime.Sub(now))
				}
				return ""
			}},
			columnAge(),
			col("COMMENT", func(s *v1alpha1.ZonalShift) string { return s.Spec.Comment }),
			message,
		},
	}
}
