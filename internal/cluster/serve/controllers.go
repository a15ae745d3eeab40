// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	runtimecluster "sigs.k8s.io/controller-runtime/pkg/cluster"

	"muster.dev/muster/internal/addons/addoncontroller"
	"muster.dev/muster/internal/cluster/clusteraccess"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/machine/providerlist"
	"muster.dev/muster/internal/network/loadbalancercontroller"
	"muster.dev/muster/internal/plane/auditlog"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/storage/filestore"
)

// runControllers reconciles clusters, node groups and machines until the context ends.
func (h *hosted) runControllers(ctx context.Context, scheme *runtime.Scheme, c component.Config) error {
	manager, err := planeclient.NewManager("the controllers", planeclient.Management(c.Account, h.service.writes), scheme, h.log, h.service.machines, planeclient.OfCluster(c.Dir.Namespace()))
	if err != nil {
		return err
	}
	connection := planeclient.Cluster(c)
	plane, err := runtimecluster.New(connection, func(o *runtimecluster.Options) { o.Scheme, o.Logger = scheme, manager.GetLogger() }, nodegroup.ClusterOptions, loadbalancercontroller.ClusterOptions)
	if err != nil {
		return fmt.Errorf("making a cache of the cluster for machines and load balancers: %w", err)
	}
	providers, err := providerlist.OfHost(c.Account, h.log, h.simulated(c))
	if err != nil {
		return err
	}
	store, err := providerlist.Store(c.Account)
	if err != nil {
		return err
	}
	agent := onHost(providers, h.service.files)
	groups, err := nodegroup.OfCluster(c, agent, store)
	if err != nil {
		return err
	}
	groups.Cluster, groups.Refused, groups.Authorities, groups.Boots, groups.Room, groups.Log = plane, h.refused, h.kubelets.Answer, h.service.boots, h.service.room, h.log
	if groups.Health, err = nodegroup.HealthOf(c, connection, h.running); err != nil {
		return err
	}
	access, err := clusteraccess.NewKeeper(c, manager, connection, h.service.identityStore, h.log)
	if err != nil {
		return err
	}
	defer access.Close()
	groups.NodeRoles, groups.Admitted = access.Roles, access.Admitted.Changed()
	watching, stopWatching := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stopWatching()
	group.Go(func() { access.Run(watching) })
	group.Go(func() { new(auditlog.Notice).Tell(watching, manager, c.Dir.Namespace(), h.securityState, h.log) })
	group.Go(func() { h.memoryTold.Tell(watching, manager, c.Dir.Namespace(), h.components) })
	group.Go(func() { h.news.Tell(watching, manager, c.Dir.Namespace()) })
	if err := h.addNodeGroups(manager, groups, access.Roles, connection, scheme, c); err != nil {
		return err
	}
	if err := addoncontroller.AddOfCluster(manager, connection, c, agent); err != nil {
		return err
	}
	if err := h.addBalancers(manager, plane, scheme, connection, c, store); err != nil {
		return err
	}
	if err := h.addVolumes(manager, scheme, connection, c, providers); err != nil {
		return err
	}
	h.setReader(manager.GetClient())
	defer h.setReader(nil)
	h.say("")
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("running controllers: %w", err)
	}
	return errControllersEnded
}

var errControllersEnded = errors.New("the controllers ended")

// onHost returns providers whose machines are made, reached and mounted on through the agent of this host.
func onHost(providers machine.Providers, files *filestore.Store) machine.Providers {
	return hostagent.New(hostagent.Config{Providers: providers, Files: files}).Providers()
}
