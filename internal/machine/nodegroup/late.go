// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/plane/readiness"
)

// lateAfter is how long after its launch a machine is late that is not Ready: many times what a join takes, and less
// than `muster up` waits.
const lateAfter = 3 * time.Minute

// untilLate is how long it is until a machine is late; 0 if it is late already, or never will be as it is Ready, or
// was.
func (r *machines) untilLate(m *v1alpha1.Machine) time.Duration {
	i := slices.IndexFunc(m.Status.Join, func(record v1alpha1.JoinRecord) bool { return record.Step == v1alpha1.StepLaunched })
	if i < 0 || joinlog.Has(m.Status.Join, v1alpha1.StepReady) {
		return 0
	}
	return max(0, m.Status.Join[i].Time.Add(lateAfter).Sub(r.Now()))
}

// late says of a machine that should be Ready by now how far it has come.
func (r *machines) late(m *v1alpha1.Machine) {
	last := m.Status.Join[len(m.Status.Join)-1].Step
	message := fmt.Sprintf("the machine is not Ready %s after its launch; its last step is %s, its next is %s; see muster logs %s",
		lateAfter, last, nextStep(m), m.Name)
	was := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	again := was != nil && (was.Reason == readiness.ReasonLate || was.Reason == "Refused")
	r.judge(m, v1alpha1.MachineJoining, readiness.ReasonLate, message)
	if !again {
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, "JoinLate", "Join", "%s", message)
	}
}

// nextStep is the step that a machine on its way in is to take next.
func nextStep(m *v1alpha1.Machine) string {
	return string(joinlog.Next(m.Status.Join, m.Spec.InstanceProfile != ""))
}
