// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
)

const (
	healthyAgain   = 5 * time.Second
	unhealthyAgain = time.Second
)

// clusters keeps the status of Clusters.
type clusters struct{ parts }

// Reconcile looks at the cluster, again and again.
func (r *clusters) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1alpha1.Cluster{}
	if err := r.management.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() && held(object, "") {
		return again(r.release(ctx, object))
	}
	before := object.DeepCopy()
	object.Status.ObservedGeneration = object.Generation
	result := reconcile.Result{}
	if p := r.check(object); p != nil {
		object.Status.Endpoint, object.Status.PrivateEndpoint, object.Status.Version, object.Status.Identity.OIDC.Issuer = "", "", "", ""
		setReady(&object.Status.Conditions, r.Now(), object.Generation, metav1.ConditionFalse, p.reason, p.message)
	} else {
		if r.Changed != nil && before.Status.ObservedGeneration != object.Generation {
			r.Changed(object)
		}
		result.RequeueAfter = r.look(ctx, object)
	}
	if equality.Semantic.DeepEqual(before.Status, object.Status) {
		return result, nil
	}
	if err := r.management.Status().Patch(ctx, object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("writing the status of the cluster: %w", err)
	}
	return result, nil
}

// check returns why a Cluster is not served, or nil. The API server compares its names with spec.name only as far as no hash is in them,
// and not its namespace.
func (r *clusters) check(object *v1alpha1.Cluster) *problem {
	switch slug := v1alpha1.ClusterSlug(object.Spec.Name); {
	case object.Name != slug || object.Namespace != slug:
		return &problem{"WrongName", fmt.Sprintf("cluster %q must have the name %[2]s, in namespace %[2]s; this one is %[3]s in namespace %[4]s: make it again there, and delete this one",
			object.Spec.Name, slug, object.Name, object.Namespace)}
	case object.Spec.Name != r.ClusterName:
		return &problem{"OneClusterPerService", fmt.Sprintf("this service runs the cluster %q; delete this one, or start another service with a state directory of its own", r.ClusterName)}
	}
	return nil
}

// release lets a deleted Cluster go. It is the wish for a cluster, which the service runs on until it is ended.
func (r *clusters) release(ctx context.Context, object *v1alpha1.Cluster) error {
	before := object.DeepCopy()
	letGo(object, "")
	if err := r.management.Patch(ctx, object, lockedPatch(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizers of a deletion with --cascade: %w", err)
	}
	return nil
}

func (r *clusters) look(ctx context.Context, object *v1alpha1.Cluster) time.Duration {
	health := r.Health(ctx)
	object.Status.Endpoint, object.Status.PrivateEndpoint, object.Status.Identity.OIDC.Issuer = health.Endpoint, health.PrivateEndpoint, health.Issuer
	if health.Version != "" { // while it cannot be asked, it is what it was
		object.Status.Version = health.Version
	}
	if health.Err != nil {
		setReady(&object.Status.Conditions, r.Now(), object.Generation, metav1.ConditionFalse, "Unhealthy", health.Err.Error())
		return unhealthyAgain
	}
	setReady(&object.Status.Conditions, r.Now(), object.Generation, metav1.ConditionTrue, "Healthy", "the API server answers")
	return healthyAgain
}

// setReady sets the condition Ready, with the moment of its last change on the given clock.
func setReady(conditions *[]metav1.Condition, now time.Time, generation int64, status metav1.ConditionStatus, reason, message string) {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: shorten(message), ObservedGeneration: generation,
	}
	if old := meta.FindStatusCondition(*conditions, condition.Type); old == nil || old.Status != status {
		condition.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	}
	meta.SetStatusCondition(conditions, condition)
}

// shorten keeps a message within what a condition may hold.
func shorten(message string) string {
	const limit = 1024
	if len(message) <= limit {
		return message
	}
	return message[:limit-3] + "..."
}
