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
)

// scalable are the machines of a group as a plan sees them. Machines of a deleted group are not protected.
func scalable(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) []plan.Machine {
	observed := observeIn(group, machines)
	for i := range observed {
		observed[i].Protected = machines[i].Spec.ProtectedFromScaleIn && group.DeletionTimestamp.IsZero()
	}
	return observed
}

// endNamed deletes the machines that spec.autoScaling.ending names, and reports whether there was one. The write that
// named them has made the group smaller, so that none is replaced and no other ends in its place.
func (r *groups) endNamed(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) (bool, error) {
	ending := group.Spec.ScalingGroup().Ending
	ended := false
	for i := range machines {
		if m := &machines[i]; alive(*m) && slices.Contains(ending, m.Name) {
			size := int(group.Spec.ScalingConfig.DesiredSize)
			if err := r.endBecause(ctx, m, shrinkCause(r.Now(), "in response to a user request", size+1, size)); err != nil {
				return ended, err
			}
			ended = true
			r.recorder.Eventf(group, nil, corev1.EventTypeNormal, "ScalingDown", "Delete", "deleted machine %s: it was to be terminated without a replacement", m.Name)
		}
	}
	return ended, nil
}

// endBecause deletes a machine, and keeps with it why.
func (r *groups) endBecause(ctx context.Context, m *v1alpha1.Machine, cause string) error {
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationTerminationCause, cause)
	if err := r.management.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting why machine %s is deleted: %w", m.Name, err)
	}
	if err := r.management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
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

// count is how many machines of a group count.
func count(machines []v1alpha1.Machine) int {
	n := 0
	for _, m := range machines {
		if alive(m) {
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
