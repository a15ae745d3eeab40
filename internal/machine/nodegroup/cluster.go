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
	"muster.dev/muster/internal/plane/readiness"
)

const (
	healthyAgain   = 5 * time.Second
	unhealthyAgain = time.Second
)

// clusters keeps the status of the one Cluster that is served. Package clustercontroller keeps the status of other
// Clusters, and of Clusters that are being deleted.
type clusters struct{ parts }

// Reconcile looks at the cluster, every few seconds.
func (r *clusters) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1alpha1.Cluster{}
	if err := r.management.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() || object.Spec.Name != r.ClusterName || object.Name != object.Namespace {
		return reconcile.Result{}, nil // clustercontroller says what becomes of it
	}
	before := object.DeepCopy()
	object.Status.ObservedGeneration = object.Generation
	r.network(object)
	if err := r.authorities(object); err != nil {
		r.Log.Warn("kubelets' authorities cannot be told", "error", err)
	}
	result := reconcile.Result{RequeueAfter: r.look(ctx, object)}
	if equality.Semantic.DeepEqual(before.Status, object.Status) {
		return result, nil
	}
	if err := r.management.Status().Patch(ctx, object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("writing the status of the cluster: %w", err)
	}
	return result, nil
}

// network says which network the cluster has: what its spec leaves out was chosen.
func (r *clusters) network(object *v1alpha1.Cluster) {
	status := &object.Status
	status.VPCID, status.PodCIDR, status.SubnetIDs = r.Network.VPCID, r.Network.Pods().String(), nil
	status.ClusterSecurityGroupID, status.EndpointAddresses = r.Network.SecurityGroupID, nil
	for _, address := range r.Network.Addresses {
		status.EndpointAddresses = append(status.EndpointAddresses, address.String())
	}
	for _, id := range r.Network.SubnetIDs() {
		status.SubnetIDs = append(status.SubnetIDs, v1alpha1.SubnetID(id))
	}
}

// authorities has the request about kubelets' authorities carried out, and says which there are.
func (r *clusters) authorities(object *v1alpha1.Cluster) error {
	if r.Authorities == nil {
		return nil
	}
	all, answer, err := r.Authorities(object.Spec.KubeletAuthority)
	if err == nil {
		object.Status.KubeletAuthorities, object.Status.KubeletAuthority = all, answer
	}
	return err
}

func (r *clusters) look(ctx context.Context, object *v1alpha1.Cluster) time.Duration {
	health := r.Health(ctx)
	object.Status.Endpoint, object.Status.PrivateEndpoint, object.Status.Identity.OIDC.Issuer = health.Endpoint, health.PrivateEndpoint, health.Issuer
	if health.Authority != "" {
		object.Status.CertificateAuthority.Data = health.Authority
	}
	for _, condition := range health.Conditions {
		condition.ObservedGeneration = object.Generation
		setCondition(&object.Status.Conditions, r.Now(), condition)
	}
	if health.Err != nil {
		reason := readiness.ReasonUnhealthy
		if object.Status.Version == "" {
			reason = readiness.ReasonCreating
		}
		setReady(&object.Status.Conditions, r.Now(), object.Generation, metav1.ConditionFalse, reason, health.Err.Error())
		return unhealthyAgain
	}
	if health.Version != "" { // while it cannot be asked, it is what it was; a cluster without one was never Ready
		object.Status.Version = health.Version
	}
	object.Status.AuthenticationMode, object.Status.SecurityGroupIDs = health.Mode, health.SecurityGroups
	follows := generationOf(object, health)
	if health.Refused != "" {
		setReady(&object.Status.Conditions, r.Now(), follows, metav1.ConditionFalse, readiness.ReasonChangeRefused, "it runs on as it was: "+health.Refused)
		return unhealthyAgain
	}
	setReady(&object.Status.Conditions, r.Now(), follows, metav1.ConditionTrue, "Healthy", "the API server answers")
	return healthyAgain
}

// generationOf is the generation of a Cluster that a look at it is about. A service that has just started says it was
// about the one before, so that nothing new is taken for done.
func generationOf(object *v1alpha1.Cluster, health Health) int64 {
	if health.Generation != 0 {
		return health.Generation
	}
	if ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.ObservedGeneration
	}
	return object.Generation
}

// setReady sets the condition Ready, with the moment of its last change on the given clock.
func setReady(conditions *[]metav1.Condition, now time.Time, generation int64, status metav1.ConditionStatus, reason, message string) {
	setCondition(conditions, now, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// setCondition sets a condition, with the moment of its last change on the given clock.
func setCondition(conditions *[]metav1.Condition, now time.Time, condition metav1.Condition) {
	condition.Message = readiness.Shorten(condition.Message)
	if old := meta.FindStatusCondition(*conditions, condition.Type); old == nil || old.Status != condition.Status {
		condition.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	}
	meta.SetStatusCondition(conditions, condition)
}
