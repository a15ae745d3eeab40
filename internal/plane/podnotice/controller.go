// SPDX-License-Identifier: Apache-2.0

package podnotice

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	component = "muster"  // the source of the Events
	kubelet   = "kubelet" // the source of those that they follow
	// Reasons of kubelets' Events (kubernetes pkg/kubelet/events).
	reasonBackOff       = "BackOff"
	reasonFailed        = "Failed"
	reasonFailedSandbox = "FailedCreatePodSandBox"
	reasonUnhealthy     = "Unhealthy"
)

// ClusterOptions makes the cluster's cache hold no Events but warnings of kubelets about pods, without those that are
// many and never noticed. The cluster need not be up when it is made.
func ClusterOptions(options *cluster.Options) {
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		mapper := meta.NewDefaultRESTMapper(nil)
		for _, kind := range []string{"Event", "EventList"} {
			mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
		}
		return mapper, nil
	}
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	of := fields.AndSelectors(
		fields.SelectorFromSet(fields.Set{"source": kubelet, "type": corev1.EventTypeWarning, "involvedObject.kind": "Pod"}),
		fields.OneTermNotEqualSelector("reason", reasonBackOff), fields.OneTermNotEqualSelector("reason", reasonUnhealthy),
	)
	options.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Event{}: {Field: of}}
}

// Add adds the controller to a manager, which starts the cluster, too. The cluster is made with ClusterOptions.
func Add(mgr manager.Manager, plane cluster.Cluster) error {
	if plane == nil {
		return errors.New("the controller of pods' notices needs a cluster")
	}
	if err := mgr.Add(plane); err != nil {
		return fmt.Errorf("adding the cache of Events to the manager: %w", err)
	}
	err := builder.ControllerManagedBy(mgr).
		Named("podnotice").
		WatchesRawSource(source.Kind(plane.GetCache(), &corev1.Event{}, &handler.TypedEnqueueRequestForObject[*corev1.Event]{})).
		Complete(&reconciler{cluster: plane.GetClient(), now: time.Now})
	if err != nil {
		return fmt.Errorf("adding the controller of pods' notices: %w", err)
	}
	return nil
}

type reconciler struct {
	cluster client.Client
	now     func() time.Time
}

// Reconcile makes the Event that is due after one of a kubelet, unless it is there.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	failed := &corev1.Event{}
	if err := r.cluster.Get(ctx, request.NamespacedName, failed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	said := decide(failed)
	if said == nil {
		return reconcile.Result{}, nil
	}
	err := r.cluster.Create(ctx, event(failed, said, r.now()))
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the Event %s of pod %s: %w", said.reason, failed.InvolvedObject.Name, err)
	}
	return reconcile.Result{}, nil
}

// event is the one that says a notice about a pod. Its name is that of no other.
func event(failed *corev1.Event, said *notice, now time.Time) *corev1.Event {
	pod := failed.InvolvedObject
	sum := sha256.Sum256([]byte(string(pod.UID) + "/" + said.about))
	moment := metav1.NewTime(now)
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: failed.Namespace, Name: fmt.Sprintf("%.200s.%x", pod.Name, sum[:8])},
		InvolvedObject: pod,
		Type:           corev1.EventTypeWarning, Reason: said.reason, Message: said.message,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: moment, LastTimestamp: moment, Count: 1,
	}
}
