// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// effects are the steps in which a change takes effect, in their order.
func effects(u *v1alpha1.Update) []v1alpha1.UpdateStepName {
	change := u.Spec.Change
	switch {
	case change.Rollout != nil:
		return []v1alpha1.UpdateStepName{v1alpha1.UpdateStepScaleUp, v1alpha1.UpdateStepUpgrade, v1alpha1.UpdateStepScaleDown}
	case u.Spec.NodeGroup != "":
		return []v1alpha1.UpdateStepName{v1alpha1.UpdateStepNodes}
	case u.Spec.Addon != "":
		return []v1alpha1.UpdateStepName{v1alpha1.UpdateStepAddon}
	case change.KubeletAuthority != nil:
		return []v1alpha1.UpdateStepName{v1alpha1.UpdateStepAuthority}
	case change.Version != "":
		return []v1alpha1.UpdateStepName{v1alpha1.UpdateStepAPIServer, v1alpha1.UpdateStepControlPlane}
	case change.AuthenticationMode != "":
		return []v1alpha1.UpdateStepName{v1alpha1.UpdateStepControlPlane, v1alpha1.UpdateStepAuthenticator}
	case change.SecurityGroups != nil:
		return []v1alpha1.UpdateStepName{v1alpha1.UpdateStepControlPlane, v1alpha1.UpdateStepSecurityGroups}
	}
	return []v1alpha1.UpdateStepName{v1alpha1.UpdateStepControlPlane}
}

// at is the step that an update is at.
func at(u *v1alpha1.Update, is facts) v1alpha1.UpdateStepName {
	all := effects(u)
	first, last := all[0], all[len(all)-1]
	target, _ := is.target(u)
	reached := false // the last step
	switch {
	case u.Status.AppliedAt == nil && is.older != "":
		return v1alpha1.UpdateStepTurn
	case u.Status.AppliedAt == nil:
		return v1alpha1.UpdateStepChange
	case target == nil:
	case first == v1alpha1.UpdateStepAPIServer:
		reached = ofItsVersion(is.cluster)
	case first == v1alpha1.UpdateStepScaleUp:
		if rollout := is.group.Status.Rollout; rollout != nil && rollout.ID == u.Name && rollout.Phase != "" {
			return v1alpha1.UpdateStepName(rollout.Phase) // they have EKS's names, both
		}
	case first == v1alpha1.UpdateStepControlPlane:
		ready := meta.FindStatusCondition(is.cluster.Status.Conditions, v1alpha1.ConditionReady)
		reached = ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration >= is.cluster.Generation
	}
	if reached {
		return last
	}
	return first
}

// progress is how far the steps of an update are after a decision. An update does not go back to an earlier step. Steps
// that nobody has seen it at, such as those while no service ran, took no time.
func progress(u *v1alpha1.Update, is facts, d decision, now time.Time) []v1alpha1.UpdateStep {
	steps := slices.Clone(u.Status.Steps)
	finish := func(message string) {
		if n := len(steps) - 1; n >= 0 && steps[n].FinishedAt == nil {
			steps[n].FinishedAt, steps[n].Message = new(metav1.NewTime(now)), message
		}
	}
	here := at(u, is)
	for _, name := range append([]v1alpha1.UpdateStepName{v1alpha1.UpdateStepTurn, v1alpha1.UpdateStepChange}, effects(u)...) {
		known := slices.ContainsFunc(steps, func(s v1alpha1.UpdateStep) bool { return s.Name == name })
		if !known && (name != v1alpha1.UpdateStepTurn || name == here) {
			finish("")
			steps = append(steps, v1alpha1.UpdateStep{Name: name, StartedAt: startOf(u, steps)})
		}
		if name == here && d.step != stepSucceed {
			break
		}
	}
	switch d.step {
	case stepNote, stepSucceed:
		finish(d.message)
	case stepFail, stepCancel:
		finish(readiness.Shorten(d.message))
	case stepWait, stepNone, stepApply, stepStop, stepFreeEtcd:
		if n := len(steps) - 1; n >= 0 && steps[n].FinishedAt == nil {
			steps[n].Message = readiness.Shorten(d.message)
		}
	}
	return steps
}

// startOf is when the step that follows others starts.
func startOf(u *v1alpha1.Update, others []v1alpha1.UpdateStep) metav1.Time {
	if n := len(others) - 1; n >= 0 {
		return *others[n].FinishedAt
	}
	return u.CreationTimestamp
}
