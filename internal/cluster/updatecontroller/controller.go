// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/plane/etcdspace"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/release"
)

const (
	// again is the time between two looks at an update in progress.
	again = 500 * time.Millisecond
	// soon is the time until a look with a newer cache.
	soon = 50 * time.Millisecond
	// freeing is how long etcd is asked again for its space.
	freeing = 2 * time.Minute
	// keptUpdates is how many updates of a cluster are kept.
	keptUpdates = 100
)

// FreeEtcd gives back the space of the etcd of a cluster that is served, by its namespace, and says what was done.
type FreeEtcd func(ctx context.Context, namespace string) (done string, err error)

// Add adds the controller of Updates to a manager of the management plane. A function says what is to be done before
// machines can be of a release; it says nothing if nothing is.
func Add(mgr manager.Manager, freeEtcd FreeEtcd, unbuilt func(release.Release) string) error {
	err := builder.ControllerManagedBy(mgr).Named("updates").For(&v1alpha1.Update{}).Complete(&updates{api: mgr.GetClient(), freeEtcd: freeEtcd, unbuilt: unbuilt, now: time.Now, began: time.Now()})
	if err != nil {
		return fmt.Errorf("adding the controller of updates: %w", err)
	}
	return nil
}

// updates reconciles Updates.
type updates struct {
	api      client.Client
	freeEtcd FreeEtcd
	unbuilt  func(release.Release) string
	now      func() time.Time
	began    time.Time
}

// Reconcile implements [reconcile.Reconciler].
func (r *updates) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	u := &v1alpha1.Update{}
	if err := r.api.Get(ctx, request.NamespacedName, u); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !u.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	is, err := r.look(ctx, u)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := next(u, is, r.now())
	if d.step == stepApply || d.step == stepStop {
		err := r.apply(ctx, u, is, d.step == stepStop)
		switch {
		case err == nil:
			return reconcile.Result{RequeueAfter: soon}, nil
		case !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err):
			return settle(fmt.Errorf("making the change of update %s: %w", u.Name, err))
		}
		d = fail(codeNotPermitted, "%s", err.Error())
	}
	if d.step == stepFreeEtcd {
		d = r.free(ctx, u)
	}
	if d.step == stepFail {
		if err := r.setBack(ctx, u, is.cluster, d); err != nil {
			return settle(err)
		}
		if d, err = r.undo(ctx, u, is.group, d); err != nil {
			return settle(err)
		}
	}
	write := func(change func(*v1alpha1.UpdateStatus)) error {
		return r.write(ctx, u, func(s *v1alpha1.UpdateStatus) {
			s.Steps = progress(u, is, d, r.now())
			change(s)
		})
	}
	switch d.step {
	case stepWait:
		return lookAgain(again, write(func(s *v1alpha1.UpdateStatus) { s.Message = d.message }))
	case stepNote:
		return lookAgain(soon, write(func(s *v1alpha1.UpdateStatus) { s.AppliedAt = new(metav1.NewTime(r.now())) }))
	case stepSucceed:
		return settle(write(func(s *v1alpha1.UpdateStatus) {
			r.end(s, v1alpha1.UpdateSuccessful)
			s.Message = d.message
		}))
	case stepCancel:
		return settle(write(func(s *v1alpha1.UpdateStatus) { r.end(s, v1alpha1.UpdateCancelled) }))
	case stepFail:
		return settle(write(func(s *v1alpha1.UpdateStatus) { r.failed(u, s, d) }))
	case stepNone, stepApply, stepStop, stepFreeEtcd:
	}
	if err := r.tidy(ctx, u); err != nil {
		return settle(err)
	}
	return reconcile.Result{}, r.prune(ctx, u.Namespace)
}

// free gives back the space of the etcd of a cluster. It is done again if the service is killed before it is written
// down, and for a while if etcd does not answer.
func (r *updates) free(ctx context.Context, u *v1alpha1.Update) decision {
	done, err := r.freeEtcd(ctx, u.Namespace)
	_, full := errors.AsType[*etcdspace.FullError](err)
	switch {
	case err == nil:
		return decision{step: stepSucceed, message: done}
	case full || r.now().Sub(u.CreationTimestamp.Time) >= freeing:
		return fail(codeUnreachable, "%s", err)
	}
	return wait("etcd is asked again: %s", err)
}

// look reads what the next step depends on.
func (r *updates) look(ctx context.Context, u *v1alpha1.Update) (facts, error) {
	is := facts{began: r.began, unbuilt: r.unbuilt}
	if u.Phase() != v1alpha1.UpdateInProgress {
		return is, nil
	}
	cluster := &v1alpha1.Cluster{}
	err := r.api.Get(ctx, client.ObjectKey{Namespace: u.Namespace, Name: u.Namespace}, cluster)
	if err == nil && cluster.Spec.Name == u.Spec.ClusterName {
		is.cluster = cluster
	}
	if client.IgnoreNotFound(err) != nil {
		return is, fmt.Errorf("reading cluster %s: %w", u.Spec.ClusterName, err)
	}
	if u.Spec.NodeGroup != "" {
		group := &v1alpha1.NodeGroup{}
		err := r.api.Get(ctx, client.ObjectKey{Namespace: u.Namespace, Name: v1alpha1.NodeGroupSlug(u.Spec.NodeGroup)}, group)
		if err == nil && group.Spec.Name == u.Spec.NodeGroup {
			is.group = group
		}
		if client.IgnoreNotFound(err) != nil {
			return is, fmt.Errorf("reading node group %s: %w", u.Spec.NodeGroup, err)
		}
		if is.leaving, err = r.leaving(ctx, is.group); err != nil {
			return is, err
		}
	}
	if u.Spec.Addon != "" {
		found := &v1alpha1.Addon{}
		err := r.api.Get(ctx, client.ObjectKey{Namespace: u.Namespace, Name: u.Spec.Addon}, found)
		if err == nil {
			is.addon = found
		}
		if client.IgnoreNotFound(err) != nil {
			return is, fmt.Errorf("reading add-on %s: %w", u.Spec.Addon, err)
		}
	}
	if is.newer, err = r.newer(ctx, u, is.cluster); err != nil {
		return is, err
	}
	is.older, err = r.older(ctx, u)
	return is, err
}

// older returns the name of an update of the same target that is in progress and comes first, or "".
func (r *updates) older(ctx context.Context, u *v1alpha1.Update) (name string, err error) {
	var all v1alpha1.UpdateList
	if err := r.api.List(ctx, &all, client.InNamespace(u.Namespace)); err != nil {
		return "", fmt.Errorf("listing the updates of cluster %s: %w", u.Spec.ClusterName, err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		if other.Phase() == v1alpha1.UpdateInProgress && other.Spec.NodeGroup == u.Spec.NodeGroup && other.Spec.Addon == u.Spec.Addon && other.Name != u.Name && comesFirst(other, u) {
			name = other.Name
		}
	}
	return name, nil
}

// leaving returns the machines of a node group that are being deleted, if the group is to have none: one of them may be
// the last node.
func (r *updates) leaving(ctx context.Context, group *v1alpha1.NodeGroup) ([]v1alpha1.Machine, error) {
	if group == nil || group.Spec.ScalingConfig.DesiredSize > 0 {
		return nil, nil
	}
	var all v1alpha1.MachineList
	if err := r.api.List(ctx, &all, client.MatchingLabels{v1alpha1.LabelCluster: group.Namespace, v1alpha1.LabelNodeGroup: group.Name}); err != nil {
		return nil, fmt.Errorf("listing the machines of node group %s: %w", group.Spec.Name, err)
	}
	return slices.DeleteFunc(all.Items, func(m v1alpha1.Machine) bool { return m.DeletionTimestamp.IsZero() }), nil
}

// apply changes the target, or stops the rollout that it has by the update, unless somebody else has changed it since
// it was read.
func (r *updates) apply(ctx context.Context, u *v1alpha1.Update, is facts, stop bool) error {
	if stop {
		before := is.group.DeepCopy()
		is.group.Spec.Rollout.Stopped = true
		return r.api.Patch(ctx, is.group, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if u.Spec.NodeGroup != "" {
		before := is.group.DeepCopy()
		nodegroupspec.Change(&is.group.Spec, u.Spec.Change)
		if rollout := u.Spec.Change.Rollout; rollout != nil {
			changeRollout(is.group, u.Name, *rollout)
		}
		metav1.SetMetaDataAnnotation(&is.group.ObjectMeta, v1alpha1.AnnotationUpdate, u.Name)
		return r.api.Patch(ctx, is.group, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if u.Spec.Addon != "" {
		before := is.addon.DeepCopy()
		changeAddon(is.addon, u.Spec.Change)
		metav1.SetMetaDataAnnotation(&is.addon.ObjectMeta, v1alpha1.AnnotationUpdate, u.Name)
		return r.api.Patch(ctx, is.addon, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	before := is.cluster.DeepCopy()
	changeCluster(is.cluster, u.Name, u.Spec.Change)
	metav1.SetMetaDataAnnotation(&is.cluster.ObjectMeta, v1alpha1.AnnotationUpdate, u.Name)
	noteGeneration(is.cluster, before)
	return r.api.Patch(ctx, is.cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// failed ends an update that failed.
func (r *updates) failed(u *v1alpha1.Update, s *v1alpha1.UpdateStatus, d decision) {
	r.end(s, v1alpha1.UpdateFailed)
	resource := cmp.Or(u.Spec.NodeGroup, u.Spec.Addon, u.Spec.ClusterName)
	s.Errors = []v1alpha1.UpdateError{{ErrorCode: d.code, ErrorMessage: readiness.Shorten(d.message), ResourceIDs: []string{resource}}}
}

// end ends an update.
func (r *updates) end(s *v1alpha1.UpdateStatus, phase v1alpha1.UpdatePhase) {
	s.Phase, s.Message, s.FinishedAt = phase, "", new(metav1.NewTime(r.now()))
}

// write changes the status of an update, if anything changes.
func (r *updates) write(ctx context.Context, u *v1alpha1.Update, change func(*v1alpha1.UpdateStatus)) error {
	before := u.DeepCopy()
	u.Status.Phase = v1alpha1.UpdateInProgress
	change(&u.Status)
	u.Status.Message = readiness.Shorten(u.Status.Message)
	if equality.Semantic.DeepEqual(before.Status, u.Status) {
		return nil
	}
	err := r.api.Status().Patch(ctx, u, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of update %s: %w", u.Name, err)
	}
	return nil
}

// prune deletes the oldest updates of a cluster that have ended, beyond the number that is kept.
func (r *updates) prune(ctx context.Context, namespace string) error {
	var all v1alpha1.UpdateList
	if err := r.api.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the updates of namespace %s: %w", namespace, err)
	}
	tooMany := len(all.Items) - keptUpdates
	slices.SortFunc(all.Items, func(a, b v1alpha1.Update) int {
		if isBefore(&a, &b) {
			return -1
		}
		return 1
	})
	for i := range all.Items {
		if tooMany <= 0 {
			break
		}
		if all.Items[i].Phase() == v1alpha1.UpdateInProgress {
			continue
		}
		tooMany--
		if err := r.api.Delete(ctx, &all.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting update %s: %w", all.Items[i].Name, err)
		}
	}
	return nil
}

// settle makes of a conflict another look: the cache was behind.
func settle(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{}, err
}

// lookAgain has another look after a time, or sooner if the cache was behind.
func lookAgain(after time.Duration, err error) (reconcile.Result, error) {
	result, err := settle(err)
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = after
	}
	return result, err
}
