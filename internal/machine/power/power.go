// SPDX-License-Identifier: Apache-2.0

package power

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

// Step is what was done about a machine that is not to run, or not for the moment.
type Step struct {
	// Off has the machine not be launched now.
	Off bool
	// Again is set if the status has to be written before the next step, which is due then.
	Again bool
	// Ended is set if the machine has just been shut down.
	Ended bool
}

// Down takes the next step toward a machine that is shut down, if its spec wants that. The instance is what the provider
// knows, and the zero value if the machine was never launched.
func Down(ctx context.Context, provider machine.Provider, m *v1alpha1.Machine, instance machine.Instance, now time.Time) (Step, error) {
	stop, reboot := Stops(m), m.Spec.Reboots != m.Status.Reboots
	said := ""
	if condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRunning); condition != nil {
		said = condition.Reason
	}
	runs := instance.State == machine.Running || instance.State == machine.Pending
	switch {
	case !stop && !reboot:
		if runs && said == v1alpha1.ReasonStopping { // the stop was taken back before it was made
			set(m, now, metav1.ConditionTrue, v1alpha1.ReasonRunning, "the machine runs, and was not shut down")
		}
		return Step{}, nil
	case instance.ID == "":
		m.Status.Reboots = m.Spec.Reboots
		if stop {
			set(m, now, metav1.ConditionFalse, v1alpha1.ReasonStopped, "the machine is not launched before it is to run")
		}
		return Step{Off: stop}, nil
	case stop && !reboot && !runs && said == v1alpha1.ReasonStopped:
		return Step{Off: true}, nil
	case stop && runs && said != v1alpha1.ReasonStopping:
		set(m, now, metav1.ConditionFalse, v1alpha1.ReasonStopping, "the machine is being shut down")
		return Step{Off: true, Again: true}, nil
	}
	if err := provider.Stop(ctx, m.Name); err != nil {
		return Step{Off: true}, fmt.Errorf("shutting the instance down: %w", err)
	}
	m.Status.Reboots = m.Spec.Reboots
	if stop {
		set(m, now, metav1.ConditionFalse, v1alpha1.ReasonStopped, "the machine is stopped")
		return Step{Off: true, Ended: true}, nil
	}
	set(m, now, metav1.ConditionFalse, v1alpha1.ReasonRebooting, "the machine is shut down and boots again")
	return Step{Off: true, Again: true, Ended: true}, nil
}

// Stops reports whether a machine is not to run: as its spec says, because it waits in a warm pool of stopped machines and
// has booted for that, or because of a drill.
func Stops(m *v1alpha1.Machine) bool {
	warm := m.Spec.WarmPool == v1alpha1.WarmStopped && meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionWarmed)
	return m.Spec.PowerState == v1alpha1.PowerStopped || warm || m.Status.Drill.Goes(v1alpha1.DrillStop)
}

// Halt shuts a machine down now, whatever its spec says. Unless it is to be stopped, it boots again.
func Halt(ctx context.Context, provider machine.Provider, m *v1alpha1.Machine, now time.Time) error {
	if err := provider.Stop(ctx, m.Name); err != nil {
		return fmt.Errorf("shutting the instance down: %w", err)
	}
	set(m, now, metav1.ConditionFalse, v1alpha1.ReasonRebooting, "the machine is shut down and boots again")
	return nil
}

// Was returns the reason for which a machine was shut down, until Up; "" if it was not.
func Was(m *v1alpha1.Machine) string {
	if condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRunning); condition != nil && condition.Status == metav1.ConditionFalse {
		return condition.Reason
	}
	return ""
}

// IsStopped reports whether a machine is stopped, as it is to be.
func IsStopped(m *v1alpha1.Machine) bool { return Stops(m) && Was(m) == v1alpha1.ReasonStopped }

// Up notes that a machine runs that was shut down.
func Up(m *v1alpha1.Machine, now time.Time) {
	switch was := Was(m); was {
	case "":
	case v1alpha1.ReasonRebooting:
		set(m, now, metav1.ConditionTrue, v1alpha1.ReasonRunning, "the machine runs")
	default:
		m.Status.StartedAt = new(metav1.NewTime(now.Truncate(time.Second)))
		set(m, now, metav1.ConditionTrue, v1alpha1.ReasonStarting, "the machine runs, and was started")
	}
}

// Starts reports whether a machine that was stopped is to be started, or was and has not settled yet.
func Starts(m *v1alpha1.Machine) bool {
	condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRunning)
	return condition != nil && slices.Contains([]string{v1alpha1.ReasonStopping, v1alpha1.ReasonStopped, v1alpha1.ReasonStarting}, condition.Reason)
}

// Settle notes that a machine does what it is for, after it was started.
func Settle(m *v1alpha1.Machine, now time.Time) {
	if Was(m) == "" && Starts(m) {
		set(m, now, metav1.ConditionTrue, v1alpha1.ReasonRunning, "the machine runs")
	}
}

func set(m *v1alpha1.Machine, now time.Time, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionRunning, Status: status, Reason: reason, Message: message,
		ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}
