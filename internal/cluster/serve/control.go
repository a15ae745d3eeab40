// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/addons/addoncontroller"
	"muster.dev/muster/internal/cluster/clusteraccess"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
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
			if err := baseline.Seed(ctx, api, wanted); err != nil {
				return err
			}
			return baseline.SetUpMembership(ctx, api, c)
		})
	})
	group.Go(func() {
		_ = retry(ctx, "setting up the cluster", h.say, func(ctx context.Context) error { return setUpCluster(ctx, scheme, c) })
	})
	group.Wait()
	if ctx.Err() != nil {
		return
	}
	group.Go(func() { baseline.KeepEndpoints(ctx, scheme, c, h.log) })
	_ = retry(ctx, "running controllers", h.say, func(ctx context.Context) error { return h.runControllers(ctx, scheme, c) })
	group.Wait()
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
	if err := baseline.SetUpCluster(ctx, api, c); err != nil {
		return err
	}
	if err := addoncontroller.ApplySelfManaged(ctx, api, c); err != nil {
		return err
	}
	return clusteraccess.SetUp(ctx, api)
}
