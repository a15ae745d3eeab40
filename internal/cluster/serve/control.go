// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"os"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/clusteraccess"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/kinddefinitions"
	"muster.dev/muster/internal/plane/planeclient"
)

// control sets the cluster up, here and in the management plane, as soon as each is ready, and then runs the
// controllers until the context ends. Whatever fails is tried again: an API server may go away at any moment.
func (h *hosted) control(ctx context.Context, wanted clusterconfig.Config, c component.Config) {
	scheme, err := planeclient.Scheme()
	if err != nil {
		h.log.Error("setting up", "error", err)
		return
	}
	var group sync.WaitGroup
	group.Go(func() {
		select {
		case <-h.service.managed:
		case <-ctx.Done():
			return
		}
		_ = retry(ctx, "registering the cluster with the management plane", h.say, func(ctx context.Context) error {
			api, err := h.service.managementClient(c.Account, scheme)
			if err != nil {
				return err
			}
			if err := seed(ctx, api, wanted); err != nil {
				return err
			}
			objects, err := baseline.Membership(c)
			if err != nil {
				return err
			}
			return baseline.Apply(ctx, api, objects)
		})
	})
	group.Go(func() {
		_ = retry(ctx, "setting up the cluster", h.say, func(ctx context.Context) error { return setUpCluster(ctx, scheme, c) })
	})
	group.Wait()
	if ctx.Err() != nil {
		return
	}
	group.Go(func() { h.keepEndpoints(ctx, scheme, c) })
	_ = retry(ctx, "running controllers", h.say, func(ctx context.Context) error { return h.runControllers(ctx, scheme, c) })
	group.Wait()
}

// seed makes the objects of a cluster from its record. The namespace comes first, and the Cluster last: once it is
// there, it says what the cluster is, and node groups are the user's alone: one that the user deletes does not come
// back.
func seed(ctx context.Context, api client.Client, wanted clusterconfig.Config) error {
	if err := baseline.EnsureNamespace(ctx, api, wanted.Cluster.Namespace); err != nil {
		return err
	}
	err := api.Get(ctx, client.ObjectKeyFromObject(wanted.Cluster), wanted.Cluster.DeepCopy())
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for the cluster: %w", err)
	}
	for _, group := range wanted.NodeGroups {
		if err := api.Create(ctx, group.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making node group %s: %w", group.Spec.Name, err)
		}
	}
	if err := api.Create(ctx, wanted.Cluster.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making cluster %s: %w", wanted.Cluster.Spec.Name, err)
	}
	return nil
}

// setUpCluster makes the objects that every cluster has.
func setUpCluster(ctx context.Context, scheme *runtime.Scheme, c component.Config) error {
	connection := planeclient.Cluster(c)
	if err := planeclient.AwaitCluster(ctx, connection); err != nil {
		return err
	}
	api, err := client.New(connection, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client of the cluster to set it up: %w", err)
	}
	ca, err := os.ReadFile(c.Authority(authority.Cluster))
	if err != nil {
		return fmt.Errorf("reading authority of the cluster for its objects: %w", err)
	}
	objects, err := baseline.Cluster(c, ca)
	if err != nil {
		return err
	}
	if err := baseline.Apply(ctx, api, objects); err != nil {
		return err
	}
	endpoints, err := endpointsClient(scheme, c)
	if err != nil {
		return err
	}
	if err := applyEndpoints(ctx, endpoints, c); err != nil {
		return err
	}
	if err := applySelfManaged(ctx, api, c); err != nil {
		return err
	}
	volumes, err := baseline.Volumes(c, v1alpha1.DefaultFileSystemID(account.DefaultID))
	if err != nil {
		return err
	}
	if err := baseline.Apply(ctx, api, volumes); err != nil {
		return err
	}
	return applyAccess(ctx, api)
}

// applyAccess defines the kinds that say who gets into a cluster by IAM, and lets its authenticator read them.
func applyAccess(ctx context.Context, api client.Client) error {
	definitions, err := clusteraccess.Kinds()
	if err != nil {
		return err
	}
	if err := kinddefinitions.Apply(ctx, api, definitions); err != nil {
		return err
	}
	objects, err := clusteraccess.Objects()
	if err != nil {
		return err
	}
	return baseline.Apply(ctx, api, objects)
}
