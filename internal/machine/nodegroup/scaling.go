// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/machine/power"
)

// scalable are the machines of a group as a plan sees them. Machines of a deleted group are not protected, nor are those of a
// rollout that came to nothing before the additional ones are gone.
func scalable(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) []plan.Machine {
	observed := observeIn(group, machines)
	for i := range observed {
		observed[i].Protected = machines[i].Spec.ProtectedFromScaleIn && group.DeletionTimestamp.IsZero() &&
			(!returns(group) || machines[i].Spec.Rollout != group.Spec.Rollout.ID)
	}
	return observed
}

// returns reports whether a group has additional machines of a rollout that failed or was stopped.
func returns(group *v1alpha1.NodeGroup) bool {
	rollout, status := group.Spec.Rollout, group.Status.Rollout
	return rollout != nil && status != nil && status.ID == rollout.ID && (status.Code != "" || rollout.Stopped) && !status.Returned
}

// resumed drops what the suspended processes of a group would do.
func resumed(group *v1alpha1.NodeGroup, actions []plan.Action) []plan.Action {
	scaling := group.Spec.ScalingGroup()
	return slices.DeleteFunc(actions, func(a plan.Action) bool {
		return group.DeletionTimestamp.IsZero() && ((a.Create > 0 || a.Warm > 0 || a.Take != "") && scaling.Suspends(v1alpha1.ProcessLaunch) || (a.Delete != "" || a.Return != "") && scaling.Suspends(v1alpha1.ProcessTerminate))
	})
}

// endMarked deletes machines that go whatever the size of the group is, and reports whether there was one: those that
// spec.autoScaling.ending names, and those that are stopped. The write that named a machine has made the group smaller, so
// that it is not replaced and no other ends in its place. A stopped machine is replaced, as Auto Scaling does after
// its health check.
func (r *groups) endMarked(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) (bool, error) {
	ending, size := group.Spec.ScalingGroup().Ending, int(group.Spec.ScalingConfig.DesiredSize)
	ended := false
	for i := range machines {
		m := &machines[i]
		var cause, kind, why string
		switch {
		case !alive(*m):
			continue
		case slices.Contains(ending, m.Name):
			cause, kind, why = shrinkCause(r.Now(), "in response to a user request", size+1, size), "ScalingDown", "it was to be terminated without a replacement"
		case unhealthy(group, m):
			cause, kind, why = healthCause(r.Now()), "ReplacingUnhealthy", "it is stopped, and another takes its place"
		default:
			continue
		}
		if err := r.endBecause(ctx, m, cause); err != nil {
			return ended, err
		}
		ended = true
		r.recorder.Eventf(group, nil, corev1.EventTypeNormal, kind, "Delete", "deleted machine %s: %s", m.Name, why)
	}
	return ended, nil
}

// unhealthy reports whether a group replaces a machine because it does not run.
func unhealthy(group *v1alpha1.NodeGroup, m *v1alpha1.Machine) bool {
	return m.Spec.WarmPool == "" && power.IsStopped(m) && !group.Spec.ScalingGroup().Suspends(v1alpha1.ProcessHealthCheck, v1alpha1.ProcessReplaceUnhealthy, v1alpha1.ProcessTerminate)
}

// healthCause is why a machine is terminated that does not run, in the words of Auto Scaling.
func healthCause(now time.Time) string {
	return fmt.Sprintf("At %s an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped.", now.UTC().Format(time.RFC3339))
}

// endBecause deletes a machine, and keeps with it why.
func (r *groups) endBecause(ctx context.Context, m *v1alpha1.Machine, cause string) error {
	noted := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&noted.ObjectMeta, v1alpha1.AnnotationTerminationCause, cause)
	if err := r.management.Patch(ctx, noted, client.MergeFrom(m)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting why machine %s is deleted: %w", m.Name, err)
	}
	if err := r.management.Delete(ctx, noted, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting machine %s: %w", m.Name, err)
	}
	return nil
}

const differs = "in response to a difference between desired and actual capacity"

// growCause is why a machine is launched, in the words of Auto Scaling.
func growCause(now time.Time, from, to int) string {
	return fmt.Sprintf("At %s an instance was started %s, increasing the capacity from %d to %d.", now.UTC().Format(time.RFC3339), differs, from, to)
}

// shrinkCause is why a machine is terminated, in the words of Auto Scaling.
func shrinkCause(now time.Time, why string, from, to int) string {
	return fmt.Sprintf("At %s an instance was taken out of service %s, shrinking the capacity from %d to %d.", now.UTC().Format(time.RFC3339), why, from, to)
}

// count is how many machines of a group count: those of its warm pool do not.
func count(machines []v1alpha1.Machine) int {
	n := 0
	for _, m := range machines {
		if alive(m) && m.Spec.WarmPool == "" {
			n++
		}
	}
	return n
}

// launchedBy gives a machine what the Auto Scaling group of its node group says.
func launchedBy(m *v1alpha1.Machine, group *v1alpha1.NodeGroup, cause string) {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationLaunchCause, cause)
	scaling := group.Spec.ScalingGroup()
	m.Spec.ProtectedFromScaleIn = scaling.ProtectNewMachines
	for _, tag := range scaling.Tags {
		if tag.PropagateAtLaunch {
			if m.Spec.Tags == nil {
				m.Spec.Tags = v1alpha1.Tags{}
			}
			m.Spec.Tags[tag.Key] = tag.Value
		}
	}
}
