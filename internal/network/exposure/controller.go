// SPDX-License-Identifier: Apache-2.0

package exposure

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

// component is the source of the Events.
const component = "muster"

// ClusterOptions makes the cluster's cache hold no Services but those that this package speaks of. The cluster need not
// be up when it is made.
func ClusterOptions(options *cluster.Options) {
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		mapper := meta.NewDefaultRESTMapper(nil)
		for _, kind := range []string{"Service", "ServiceList", "Event"} {
			mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
		}
		return mapper, nil
	}
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	options.Cache.ByObject = map[client.Object]cache.ByObject{
		&corev1.Service{}: {Field: fields.OneTermNotEqualSelector("spec.type", string(corev1.ServiceTypeClusterIP))},
	}
}

// Add adds the controller to a manager, which starts the cluster, too. The cluster is made with ClusterOptions. If the
// cluster has no load balancers at all, none says why; it is empty otherwise.
func Add(mgr manager.Manager, plane cluster.Cluster, none string) error {
	if plane == nil {
		return errors.New("the controller of Services' notices needs a cluster")
	}
	if err := mgr.Add(plane); err != nil {
		return fmt.Errorf("adding the cache of Services to the manager: %w", err)
	}
	err := builder.ControllerManagedBy(mgr).
		Named("exposure").
		WatchesRawSource(source.Kind(plane.GetCache(), &corev1.Service{}, &handler.TypedEnqueueRequestForObject[*corev1.Service]{})).
		Complete(&reconciler{cluster: plane.GetClient(), none: none, now: time.Now})
	if err != nil {
		return fmt.Errorf("adding the controller of Services' notices: %w", err)
	}
	return nil
}

type reconciler struct {
	cluster client.Client
	none    string
	now     func() time.Time
}

// Reconcile makes the Event that is due for one Service, unless it is there.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	service := &corev1.Service{}
	if err := r.cluster.Get(ctx, request.NamespacedName, service); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	said, again := decide(service, r.none, r.now())
	if said != nil {
		err := r.cluster.Create(ctx, event(service, said, r.now()))
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return reconcile.Result{}, nil
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return reconcile.Result{}, fmt.Errorf("writing the Event %s of Service %s: %w", said.reason, request.NamespacedName, err)
		}
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// event is the one with which a notice is given to a Service. Its name is that of no other.
func event(service *corev1.Service, said *notice, now time.Time) *corev1.Event {
	sum := sha256.Sum256([]byte(string(service.UID) + "/" + said.reason))
	moment := metav1.NewTime(now)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: fmt.Sprintf("%s.%x", service.Name, sum[:8])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Service", Namespace: service.Namespace, Name: service.Name,
			UID: service.UID, ResourceVersion: service.ResourceVersion,
		},
		Type: said.kind, Reason: said.reason, Message: said.message,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: moment, LastTimestamp: moment, Count: 1,
	}
}
