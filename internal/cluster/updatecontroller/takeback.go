// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/release"
)

// takeBack sets back what an update asked of a cluster and was refused, its version or settings. A cluster that still asked
// for them would be refused whatever the next update asks for, with the words of the one before. The force of a version
// ends with its update, too: who asks for the version later does not force it.
func (r *updates) takeBack(ctx context.Context, u *v1alpha1.Update) error {
	change, ended := u.Spec.Change, u.Phase() == v1alpha1.UpdateFailed || u.Phase() == v1alpha1.UpdateSuccessful
	if !ended || change.Version == "" && change.Components == nil {
		return nil
	}
	c := &v1alpha1.Cluster{}
	if err := r.api.Get(ctx, client.ObjectKey{Namespace: u.Namespace, Name: u.Namespace}, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.Annotations[v1alpha1.AnnotationUpdate] != u.Name {
		return nil // it has been changed by another update since
	}
	before := c.DeepCopy()
	if u.Phase() == v1alpha1.UpdateFailed {
		runs, settings := keeps(u, c), settingsBefore(u, c)
		if runs == "" && settings == nil {
			return nil
		}
		if runs != "" {
			c.Spec.Version = runs
		}
		settings.set(&c.Spec)
		delete(c.Annotations, v1alpha1.AnnotationUpdate) // once: the same may be asked for by kubectl, too
	}
	delete(c.Annotations, v1alpha1.AnnotationForceVersion)
	delete(c.Annotations, v1alpha1.AnnotationSettingsBefore)
	if equality.Semantic.DeepEqual(before, c) {
		return nil
	}
	if err := r.api.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("ending what update %s asked of cluster %s: %w", u.Name, u.Spec.ClusterName, err)
	}
	return nil
}

// refused reports whether a cluster as it is asked for now was refused.
func refused(c *v1alpha1.Cluster) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == readiness.ReasonChangeRefused && ready.ObservedGeneration >= c.Generation
}

// keeps is the minor that a cluster keeps because it was refused the version that a failed update asked for; "" if the
// cluster was not, or has been changed since.
func keeps(u *v1alpha1.Update, c *v1alpha1.Cluster) string {
	if !refused(c) || c.Annotations[v1alpha1.AnnotationUpdate] != u.Name || c.Spec.Version != u.Spec.Change.Version || c.Status.Version == "" || ofItsVersion(c) {
		return ""
	}
	return release.Minor(c.Status.Version)
}
