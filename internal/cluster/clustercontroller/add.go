// SPDX-License-Identifier: Apache-2.0

package clustercontroller

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second
	// workers is how many clusters are made or removed at once.
	workers = 5
)

// Add adds the controllers of Clusters and namespaces to a manager of the management plane.
func Add(mgr manager.Manager, hosts Hosts) error {
	if hosts == nil {
		return errors.New("the controller of clusters needs something that runs them")
	}
	plane, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("making a client for what namespaces hold: %w", err)
	}
	objects, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("making a client for what namespaces hold: %w", err)
	}
	options := func() controller.Options { // each has a rate limiter of its own
		return controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}
	}
	err = builder.ControllerManagedBy(mgr).Named("clusters").
		For(&v1alpha1.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(options()).
		Complete(&clusters{hosts: hosts, api: mgr.GetClient(), live: mgr.GetAPIReader()})
	if err != nil {
		return fmt.Errorf("adding the controller of clusters: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).Named("namespaces").For(&corev1.Namespace{}).WithOptions(options()).
		Complete(&namespaces{api: mgr.GetClient(), live: mgr.GetAPIReader(), contents: Everything{Discovery: plane, Metadata: objects}})
	if err != nil {
		return fmt.Errorf("adding the controller of namespaces: %w", err)
	}
	return nil
}
