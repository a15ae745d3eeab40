// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/release"
)

// takeBack sets spec.version of a cluster back after an update to another version was refused. A cluster that still asked
// for that version would not change when the next update asks for it, and that update would fail with the words of the
// one before.
func (r *updates) takeBack(ctx context.Context, u *v1alpha1.Update) error {
	if u.Spec.Change.Version == "" || u.Phase() != v1alpha1.UpdateFailed {
		return nil
	}
	c := &v1alpha1.Cluster{}
	if err := r.api.Get(ctx, client.ObjectKey{Namespace: u.Namespace, Name: u.Namespace}, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	runs := keeps(u, c)
	if runs == "" {
		return nil
	}
	before := c.DeepCopy()
	c.Spec.Version = runs
	delete(c.Annotations, v1alpha1.AnnotationUpdate)       // once: the version may be asked for by kubectl, too,
	delete(c.Annotations, v1alpha1.AnnotationForceVersion) // and is not forced then
	if err := r.api.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("setting the version of cluster %s back after update %s: %w", u.Spec.ClusterName, u.Name, err)
	}
	return nil
}

// keeps is the minor that a cluster keeps because it was refused the version that a failed update asked for; "" if the
// cluster was not, or has been changed since.
func keeps(u *v1alpha1.Update, c *v1alpha1.Cluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	refused := ready != nil && ready.Reason == readiness.ReasonChangeRefused && ready.ObservedGeneration >= c.Generation
	if !refused || c.Annotations[v1alpha1.AnnotationUpdate] != u.Name || c.Spec.Version != u.Spec.Change.Version || c.Status.Version == "" || ofItsVersion(c) {
		return ""
	}
	return release.Minor(c.Status.Version)
}
