// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/plane/readiness"
)

const (
	// admittedAgain is how often it is asked whether the cluster still lets a machine in that is Ready. When it does
	// not any more, the Node stays Ready for most of a minute, and nothing on it says why it then is not.
	admittedAgain = 15 * time.Second
	refusedAgain  = 2 * time.Second
	// heardFor is how long a refused token explains why its machine is not Ready. A kubelet that is refused tries again
	// within seconds.
	heardFor = 30 * time.Second
)

// admission asks whether the cluster lets the machine in by its role, sets the condition, and returns the time until
// the next question.
func (r *machines) admission(ctx context.Context, m *v1alpha1.Machine, instance machine.Instance) time.Duration {
	if m.Spec.InstanceProfile == "" || r.NodeRoles == nil {
		return 0
	}
	if instance.State != machine.Running {
		return refusedAgain
	}
	if left := r.memory.checkedFor(m.Name, r.Now()); left > 0 {
		switch old := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionIdentity); {
		case old == nil:
		case old.Status == metav1.ConditionFalse:
			r.keptOut(m, old.Message)
		case old.Reason == reasonNotSeen && wasThere(m):
			r.admitted(m)
		}
		return left
	}
	err := r.NodeRoles.Check(ctx, m)
	var refusal *Refusal
	again := refusedAgain
	switch {
	case err == nil:
		again = r.welcome(m)
	case errors.As(err, &refusal):
		r.refuse(m, "the cluster does not let the machine in: "+refusal.Error())
	default: // a service that starts just now is not news
		if condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionIdentity); condition != nil {
			r.identity(m, metav1.ConditionUnknown, "NotKnown", fmt.Sprintf("the check whether the cluster lets the machine in failed: %v", err))
		}
	}
	r.memory.checked(m.Name, r.Now().Add(again))
	return again
}

// welcome notes the condition of a machine whose role credentials the cluster accepts. Only the machine's own requests
// show that it uses them, and with a correct token. A refused token explains why a machine is not Ready, and nothing
// else: anybody with the machine's session could have sent it.
func (r *machines) welcome(m *v1alpha1.Machine) time.Duration {
	switch heard := r.memory.heardOf(m.Name, r.Now()); {
	case m.Status.Phase == v1alpha1.MachineReady:
		r.admitted(m)
		return admittedAgain
	case heard != nil:
		r.refuse(m, "the cluster would let the machine in by its role, but refuses the token that is sent with its session: "+heard.Error())
	case wasThere(m):
		r.admitted(m)
	default:
		r.identity(m, metav1.ConditionUnknown, reasonNotSeen, "the cluster would let the machine in by its role; the machine has not reached the API server yet")
	}
	return refusedAgain
}

// reasonNotSeen is that the machine was not at the API server yet.
const reasonNotSeen = "NotSeen"

// wasThere reports whether the API server has taken the machine for its node before.
func wasThere(m *v1alpha1.Machine) bool {
	return joinlog.Has(m.Status.Join, v1alpha1.StepAPIReached) || joinlog.Has(m.Status.Join, v1alpha1.StepReady)
}

func (r *machines) admitted(m *v1alpha1.Machine) {
	r.identity(m, metav1.ConditionTrue, "Admitted", "the cluster lets the machine in by its role")
}

// refuse notes that the machine is not let in, and why. A new reason is an event.
func (r *machines) refuse(m *v1alpha1.Machine, message string) {
	if r.identity(m, metav1.ConditionFalse, "Refused", message) {
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, "Refused", "Join", "%s", readiness.Shorten(message))
	}
	r.keptOut(m, message)
}

// keptOut says of a machine that is not Ready why it is not.
func (r *machines) keptOut(m *v1alpha1.Machine, message string) {
	if m.Status.Phase == v1alpha1.MachineJoining || m.Status.Phase == v1alpha1.MachineNotReady {
		r.judge(m, m.Status.Phase, "Refused", message)
	}
}

// identity sets the condition Identity, and reports whether it is another than before.
func (r *machines) identity(m *v1alpha1.Machine, status metav1.ConditionStatus, reason, message string) bool {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionIdentity, Status: status, Reason: reason, Message: readiness.Shorten(message), ObservedGeneration: m.Generation,
	}
	old := meta.FindStatusCondition(m.Status.Conditions, condition.Type)
	another := old == nil || old.Status != status // now: setting it changes what old points to
	if another {
		condition.LastTransitionTime = metav1.NewTime(r.Now().Truncate(time.Second))
	}
	meta.SetStatusCondition(&m.Status.Conditions, condition)
	return another
}
