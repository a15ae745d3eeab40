// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/release"
)

// settingBack is an update that has failed, and why. It is on its cluster from the moment at which what the update asked
// for is set back: a service that is killed before the update says so itself must not take the cluster, as it is then, for
// a cluster that took the change.
type settingBack struct {
	Update  string `json:"update"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// setBackBy says why an update has failed whose change was set back already; nil if it was not.
func setBackBy(u *v1alpha1.Update, c *v1alpha1.Cluster) *settingBack {
	why := &settingBack{}
	if json.Unmarshal([]byte(c.Annotations[v1alpha1.AnnotationSetBack]), why) != nil || why.Update != u.Name {
		return nil
	}
	return why
}

// asks reports whether an update asks for what is set back if it fails: a version, or settings.
func asks(u *v1alpha1.Update) bool {
	return u.Spec.Change.Version != "" || u.Spec.Change.Components != nil
}

// noteGeneration notes the generation that a cluster has once its spec is written, if that differs from the one before.
func noteGeneration(c, before *v1alpha1.Cluster) {
	generation := before.Generation
	if !equality.Semantic.DeepEqual(before.Spec, c.Spec) {
		generation++
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationUpdateGeneration, strconv.FormatInt(generation, 10))
}

// changedSince reports whether somebody has changed the spec of a cluster after an update.
func changedSince(u *v1alpha1.Update, c *v1alpha1.Cluster) bool {
	generation, err := strconv.ParseInt(c.Annotations[v1alpha1.AnnotationUpdateGeneration], 10, 64)
	return err == nil && c.Annotations[v1alpha1.AnnotationUpdate] == u.Name && c.Generation > generation
}

// setBack sets back what an update asked of a cluster that fails, its version or settings, before the update says that it
// failed: whoever asks for something else then finds the cluster as it was. A cluster that still asked for them would be
// refused whatever the next update asks for, with the words of the one before.
func (r *updates) setBack(ctx context.Context, u *v1alpha1.Update, c *v1alpha1.Cluster, d decision) error {
	if c == nil || !asks(u) || u.Status.AppliedAt == nil || !c.DeletionTimestamp.IsZero() || setBackBy(u, c) != nil || c.Annotations[v1alpha1.AnnotationUpdate] != u.Name {
		return nil // among them: it has been changed by another update since
	}
	runs, settings := keeps(u, c), settingsBefore(u, c)
	if runs == "" && settings == nil {
		return nil
	}
	why, err := json.Marshal(settingBack{u.Name, d.code, readiness.Shorten(d.message)})
	if err != nil {
		return fmt.Errorf("rendering why update %s failed: %w", u.Name, err)
	}
	before := c.DeepCopy()
	if runs != "" {
		c.Spec.Version = runs
	}
	settings.set(&c.Spec)
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationSetBack, string(why))
	delete(c.Annotations, v1alpha1.AnnotationUpdate) // once: the same may be asked for by kubectl, too
	forget(c)
	err = r.api.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil // the cluster stays as it is, and the update ends all the same
	}
	if err != nil {
		return fmt.Errorf("setting back what update %s asked of cluster %s: %w", u.Name, u.Spec.ClusterName, err)
	}
	return nil
}

// forget removes what is kept of an update while it runs. The force of a version ends with its update, too: who asks for
// the version later does not force it.
func forget(c *v1alpha1.Cluster) {
	for _, note := range []string{v1alpha1.AnnotationForceVersion, v1alpha1.AnnotationSettingsBefore, v1alpha1.AnnotationUpdateGeneration} {
		delete(c.Annotations, note)
	}
}

// tidy removes from a cluster what was kept there of an update that has ended.
func (r *updates) tidy(ctx context.Context, u *v1alpha1.Update) error {
	if u.Phase() != v1alpha1.UpdateFailed && u.Phase() != v1alpha1.UpdateSuccessful || !asks(u) {
		return nil
	}
	c := &v1alpha1.Cluster{}
	if err := r.api.Get(ctx, client.ObjectKey{Namespace: u.Namespace, Name: u.Namespace}, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := c.DeepCopy()
	if c.Annotations[v1alpha1.AnnotationUpdate] == u.Name {
		forget(c)
	}
	if setBackBy(u, c) != nil {
		delete(c.Annotations, v1alpha1.AnnotationSetBack)
	}
	if equality.Semantic.DeepEqual(before, c) {
		return nil
	}
	if err := r.api.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("ending what update %s asked of cluster %s: %w", u.Name, u.Spec.ClusterName, err)
	}
	return nil
}

// keeps is the minor that a cluster keeps because it did not take the version that a failed update asked for; "" if it
// took the version, or is to have another by now.
func keeps(u *v1alpha1.Update, c *v1alpha1.Cluster) string {
	if u.Spec.Change.Version == "" || c.Annotations[v1alpha1.AnnotationUpdate] != u.Name || c.Spec.Version != u.Spec.Change.Version || c.Status.Version == "" || ofItsVersion(c) {
		return ""
	}
	return release.Minor(c.Status.Version)
}
