// SPDX-License-Identifier: Apache-2.0

package joinlog

import (
	"slices"

	"muster.dev/muster/api/v1alpha1"
)

// Merge adds the steps of more that records lacks: a step that was seen first stays. The result is in the order of
// v1alpha1.JoinSteps.
func Merge(records []v1alpha1.JoinRecord, more ...v1alpha1.JoinRecord) []v1alpha1.JoinRecord {
	var merged []v1alpha1.JoinRecord
	for _, step := range v1alpha1.JoinSteps() {
		is := func(record v1alpha1.JoinRecord) bool { return record.Step == step }
		if i := slices.IndexFunc(records, is); i >= 0 {
			merged = append(merged, records[i])
		} else if i := slices.IndexFunc(more, is); i >= 0 {
			merged = append(merged, more[i])
		}
	}
	return merged
}

// Has reports whether a step was taken.
func Has(records []v1alpha1.JoinRecord, step v1alpha1.JoinStep) bool {
	return slices.ContainsFunc(records, func(record v1alpha1.JoinRecord) bool { return record.Step == step })
}

// Next returns the first step that was not taken yet, or "" if all were. A machine that joins by a role makes no client
// certificate.
func Next(records []v1alpha1.JoinRecord, byRole bool) v1alpha1.JoinStep {
	steps := slices.DeleteFunc(v1alpha1.JoinSteps(), func(step v1alpha1.JoinStep) bool {
		return byRole && (step == v1alpha1.StepClientCSRCreated || step == v1alpha1.StepClientCSRApproved || step == v1alpha1.StepClientCSRIssued)
	})
	for i, step := range steps {
		passedOver := slices.ContainsFunc(steps[i+1:], func(later v1alpha1.JoinStep) bool { return Has(records, later) })
		if !Has(records, step) && !passedOver {
			return step
		}
	}
	return ""
}
