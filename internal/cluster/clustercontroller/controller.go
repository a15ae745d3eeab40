// SPDX-License-Identifier: Apache-2.0

package clustercontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// Hosts runs clusters.
type Hosts interface {
	// Host has a cluster run from now on as its object says. A cluster that cannot be run as it is asked is a
	// [*Refusal]. Doing it again changes nothing.
	Host(ctx context.Context, object *v1alpha1.Cluster) error
	// State reports whether the controllers of a cluster run, which keep its status, and if they do not what the
	// cluster waits for.
	State(namespace string) (served bool, message string)
	// Close has the control plane of a cluster that is to be deleted launch no more machines.
	Close(object *v1alpha1.Cluster)
	// Remove ends the processes of a cluster and removes everything of it, and returns when all is gone. A cluster that
	// is not there is not an error.
	Remove(ctx context.Context, object *v1alpha1.Cluster) error
}

// Refusal is why a cluster is not run as its object asks.
type Refusal struct {
	// Reason is that of the condition Ready, in CamelCase.
	Reason string
	// Message says what was wrong, and what to do.
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// The reasons of the condition Ready that are written here.
const (
	ReasonDeleting        = "Deleting"
	ReasonNodeGroupsExist = "NodeGroupsExist"
	// ReasonFargateProfilesExist is of a cluster that is to be deleted and has Fargate profiles.
	ReasonFargateProfilesExist = "FargateProfilesExist"
	ReasonFailed               = "Failed"
)

const (
	// startingAgain is the time between two looks at a cluster that is starting or ending.
	startingAgain = time.Second
	// servedAgain is the time between two looks at one that is served.
	servedAgain = 5 * time.Second
	// refusedAgain is the time between two looks at one that is refused.
	refusedAgain = 10 * time.Second
)

// clusters reconciles Clusters.
type clusters struct {
	hosts Hosts
	api   client.Client
	live  client.Reader // not from the cache
}

// Reconcile implements [reconcile.Reconciler].
func (r *clusters) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1alpha1.Cluster{}
	if err := r.api.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		return r.remove(ctx, object)
	}
	if slug := v1alpha1.ClusterSlug(object.Spec.Name); object.Name != slug || object.Namespace != slug {
		return reconcile.Result{}, r.say(ctx, object, readiness.ReasonWrongName, fmt.Sprintf(
			"cluster %q must have the name %[2]s, in namespace %[2]s; this one is %[3]s in namespace %[4]s: make it again there, and delete this one",
			object.Spec.Name, slug, object.Name, object.Namespace))
	}
	if controllerutil.AddFinalizer(object, v1alpha1.FinalizerCluster) {
		if err := r.api.Update(ctx, object); err != nil {
			return settle(fmt.Errorf("adding the finalizer of cluster %s: %w", object.Spec.Name, err))
		}
	}
	return r.run(ctx, object)
}

// run has the cluster run, and says what keeps it from being served.
func (r *clusters) run(ctx context.Context, object *v1alpha1.Cluster) (reconcile.Result, error) {
	err := r.hosts.Host(ctx, object)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return reconcile.Result{RequeueAfter: refusedAgain}, r.say(ctx, object, refusal.Reason, refusal.Message)
	}
	if err != nil {
		return reconcile.Result{}, errors.Join(err, r.say(ctx, object, ReasonFailed, err.Error()))
	}
	served, message := r.hosts.State(object.Namespace)
	if served {
		return reconcile.Result{RequeueAfter: servedAgain}, nil
	}
	if message == "" {
		message = "the control plane is starting"
	}
	return reconcile.Result{RequeueAfter: startingAgain}, r.say(ctx, object, readiness.ReasonCreating, message)
}

// remove ends a deleted cluster once its node groups and machines are gone, with its namespace.
func (r *clusters) remove(ctx context.Context, object *v1alpha1.Cluster) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(object, v1alpha1.FinalizerCluster) { // it was refused, and nothing runs
		return settle(r.release(ctx, object))
	}
	// Removing the cluster that has the name by now, because the cache is behind, would be the end of it.
	uid := object.UID
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil || object.UID != uid {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.hosts.Close(object)
	reason, message, err := r.keeps(ctx, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	if reason != "" {
		return reconcile.Result{RequeueAfter: startingAgain}, r.say(ctx, object, reason, message)
	}
	if err := r.say(ctx, object, ReasonDeleting, "its processes are being ended"); err != nil {
		return settle(err)
	}
	if err := r.hosts.Remove(ctx, object); err != nil {
		return reconcile.Result{}, errors.Join(err, r.say(ctx, object, ReasonDeleting, err.Error()))
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Namespace}}
	if err := r.api.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("deleting namespace %s of a cluster that is gone: %w", object.Namespace, err)
	}
	return settle(r.release(ctx, object))
}

// keeps returns what keeps a deleted cluster, or an empty reason.
func (r *clusters) keeps(ctx context.Context, object *v1alpha1.Cluster) (reason, message string, err error) {
	var groups v1alpha1.NodeGroupList
	if err := r.live.List(ctx, &groups, client.InNamespace(object.Namespace)); err != nil {
		return "", "", fmt.Errorf("listing the node groups of cluster %s: %w", object.Spec.Name, err)
	}
	if len(groups.Items) > 0 {
		return ReasonNodeGroupsExist, fmt.Sprintf("it is deleted once its node groups are: %s. Delete them, or all at once with `muster delete cluster %s --cascade`",
			some(groups.Items, func(g v1alpha1.NodeGroup) string { return g.Spec.Name }), object.Spec.Name), nil
	}
	var profiles v1alpha1.FargateProfileList
	if err := r.live.List(ctx, &profiles, client.InNamespace(object.Namespace)); err != nil {
		return "", "", fmt.Errorf("listing the Fargate profiles of cluster %s: %w", object.Spec.Name, err)
	}
	if len(profiles.Items) > 0 {
		return ReasonFargateProfilesExist, fmt.Sprintf("it is deleted once its Fargate profiles are: %s. Delete them, or all at once with `muster delete cluster %s --cascade`",
			some(profiles.Items, func(p v1alpha1.FargateProfile) string { return p.Spec.Name }), object.Spec.Name), nil
	}
	var machines v1alpha1.MachineList
	if err := r.live.List(ctx, &machines); err != nil {
		return "", "", fmt.Errorf("listing the machines of cluster %s: %w", object.Spec.Name, err)
	}
	left := slices.DeleteFunc(machines.Items, func(m v1alpha1.Machine) bool { return m.Spec.ClusterName != object.Spec.Name })
	if err := r.terminate(ctx, left); err != nil {
		return "", "", err
	}
	if len(left) > 0 {
		return ReasonDeleting, "its machines are being terminated: " + some(left, func(m v1alpha1.Machine) string { return m.Name }), nil
	}
	return "", "", nil
}

// terminate deletes the machines of a cluster without a node group, which RunInstances made: nobody else does, and only
// the cluster's controllers can end them.
func (r *clusters) terminate(ctx context.Context, machines []v1alpha1.Machine) error {
	for i := range machines {
		m := &machines[i]
		if m.Spec.NodeGroup != "" || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.api.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting machine %s, whose cluster is deleted: %w", m.Name, err)
		}
	}
	return nil
}

// some lists the names of objects, five at most.
func some[T any](objects []T, name func(T) string) string {
	const most = 5
	names := make([]string, 0, len(objects))
	for _, object := range objects {
		names = append(names, name(object))
	}
	slices.Sort(names)
	if more := len(names) - most; more > 0 {
		names = append(names[:most:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// release removes the finalizers that keep a deleted Cluster: the controller's, and those of a deletion with --cascade,
// which the management plane has no garbage collector for.
func (r *clusters) release(ctx context.Context, object *v1alpha1.Cluster) error {
	before := object.DeepCopy()
	for _, name := range []string{v1alpha1.FinalizerCluster, metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents} {
		controllerutil.RemoveFinalizer(object, name)
	}
	if equality.Semantic.DeepEqual(before.Finalizers, object.Finalizers) {
		return nil
	}
	if err := r.api.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizers of cluster %s: %w", object.Spec.Name, err)
	}
	return nil
}

// say writes the condition Ready, false, unless it is so already.
func (r *clusters) say(ctx context.Context, object *v1alpha1.Cluster, reason, message string) error {
	before := object.DeepCopy()
	object.Status.ObservedGeneration = object.Generation
	changed := meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: readiness.Shorten(message), ObservedGeneration: object.Generation,
	})
	if !changed && before.Status.ObservedGeneration == object.Generation {
		return nil
	}
	if err := r.api.Status().Patch(ctx, object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of cluster %s: %w", object.Spec.Name, err)
	}
	return nil
}

// settle makes of a conflict another look: the cache was behind.
func settle(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, nil
	}
	return reconcile.Result{}, err
}
