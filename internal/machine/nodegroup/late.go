// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/repair"
	"muster.dev/muster/internal/plane/readiness"
)

// lateAfter is how long after its launch a machine is late that is not Ready: many times what a join takes, and less
// than `muster up` waits.
const lateAfter = 3 * time.Minute

// untilFailed is how long it is until the next of the machines has failed to join; 0 if none may any more.
func untilFailed(machines []v1alpha1.Machine, now time.Time) time.Duration {
	var wait time.Duration
	for i := range machines {
		if m := &machines[i]; joinsStill(m) {
			wait = soonest(wait, launchedAt(m).Add(repair.JoinPatience).Sub(now))
		}
	}
	return wait
}

// joinsStill reports whether a machine was launched to become a node, and never was. A machine of a warm pool is to become
// none yet.
func joinsStill(m *v1alpha1.Machine) bool {
	return alive(*m) && !ofPool(m) && m.Spec.PowerState != v1alpha1.PowerStopped && !launchedAt(m).IsZero() && !joinlog.Has(m.Status.Join, v1alpha1.StepReady)
}

// notJoined names a machine that is not a node a quarter of an hour after its launch, with what keeps it, and says how
// many others there are; "" if all are, or may be yet.
func notJoined(machines []v1alpha1.Machine, now time.Time) string {
	first, others := "", 0
	for i := range machines {
		m := &machines[i]
		switch {
		case !joinsStill(m) || now.Before(launchedAt(m).Add(repair.JoinPatience)):
		case first == "":
			first = fmt.Sprintf("%s is not a node %v after its launch: %s", m.Name, repair.JoinPatience, readiness.Message(m.Status.Conditions))
		default:
			others++
		}
	}
	if others > 0 {
		first += fmt.Sprintf(" (and %d more)", others)
	}
	return first
}

// untilLate is how long it is until a machine is late; 0 if it is late already, or never will be as it is Ready, or
// was.
func (r *machines) untilLate(m *v1alpha1.Machine) time.Duration {
	launched := launchedAt(m)
	if launched.IsZero() || joinlog.Has(m.Status.Join, v1alpha1.StepReady) {
		return 0
	}
	return max(0, launched.Add(lateAfter).Sub(r.Now()))
}

// late says of a machine that should be Ready by now how far it has come, and what its Node says, if it has one.
func (r *machines) late(m *v1alpha1.Machine, node *corev1.Node) {
	last := m.Status.Join[len(m.Status.Join)-1].Step
	message := fmt.Sprintf("the machine is not Ready %s after its launch; its last step is %s, its next is %s; see muster logs %s",
		lateAfter, last, nextStep(m), m.Name)
	if node != nil {
		ready := readyOf(node)
		message += fmt.Sprintf("; its node says: %s: %s", ready.Reason, ready.Message)
	}
	was := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	again := was != nil && (was.Reason == readiness.ReasonLate || was.Reason == "Refused")
	r.judge(m, v1alpha1.MachineJoining, readiness.ReasonLate, message)
	if !again {
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, "JoinLate", "Join", "%s", readiness.Shorten(message))
	}
}

// nextStep is the step that a machine on its way in is to take next.
func nextStep(m *v1alpha1.Machine) string {
	return string(joinlog.Next(m.Status.Join, m.Spec.InstanceProfile != ""))
}
