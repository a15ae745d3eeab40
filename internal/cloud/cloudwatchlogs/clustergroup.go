// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/plane/logevent"
)

// AddController adds the controller that makes the log group of each cluster with a log type that is switched on, as EKS
// does. The log group stays when the cluster goes, also as on EKS. management is a client of the management plane.
func AddController(mgr manager.Manager, management client.Client) error {
	if management == nil {
		return errors.New("the controller of clusters' log groups needs a client of the management plane")
	}
	err := builder.ControllerManagedBy(mgr).Named("cluster-log-group").
		For(&v1alpha1.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(&clusterGroups{mgr.GetClient(), management})
	if err != nil {
		return fmt.Errorf("adding the controller of clusters' log groups: %w", err)
	}
	return nil
}

type clusterGroups struct {
	cached     client.Reader
	management client.Client
}

// Reconcile implements [reconcile.Reconciler].
func (g *clusterGroups) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var cluster v1alpha1.Cluster
	if err := g.cached.Get(ctx, request.NamespacedName, &cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if len(cluster.Spec.EKS.LoggingTypes) == 0 || !cluster.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	name := logevent.LogGroup(cluster.Spec.Name)
	err := groups.Create(ctx, g.management, &awsrecord.Record[group]{ID: groups.NameOf(name), Name: name})
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return reconcile.Result{}, err
}
