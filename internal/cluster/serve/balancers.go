// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	runtimecluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/internal/machine/balancerstore"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/exposure"
	"muster.dev/muster/internal/network/loadbalancercontroller"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/podnotice"
)

// addBalancers adds the controllers of Services: of type LoadBalancer, and of those that nobody outside the VPC
// reaches; and that of Events about pods. The cluster is made with the options of load balancers, and started elsewhere.
func (h *hosted) addBalancers(mgr manager.Manager, plane runtimecluster.Cluster, scheme *runtime.Scheme, connection *rest.Config, c component.Config, store *machine.Store) error {
	logged := func(o *runtimecluster.Options) { o.Scheme, o.Logger = scheme, mgr.GetLogger() }
	services, err := runtimecluster.New(connection, logged, exposure.ClusterOptions)
	if err != nil {
		return fmt.Errorf("making a cache of the cluster for Services: %w", err)
	}
	none := ""
	if !c.VPC {
		none = "the service runs without root, and so its machines are simulated and run no pods: run it as root"
	}
	if err := exposure.Add(mgr, services, none); err != nil {
		return fmt.Errorf("adding the controller of Services: %w", err)
	}
	if none != "" {
		return nil
	}
	events, err := runtimecluster.New(connection, logged, podnotice.ClusterOptions)
	if err != nil {
		return fmt.Errorf("making a cache of the cluster for Events about pods: %w", err)
	}
	if err := podnotice.Add(mgr, events); err != nil {
		return err
	}
	network, err := vpc.Open(c.State.VPCs(), c.Network.VPCID)
	if err != nil {
		return err
	}
	return loadbalancercontroller.Add(mgr, plane, h.service.balancers.Of(c, network, store))
}

// balancerProcesses are the account's processes, once they are supervised.
func (s *Service) balancerProcesses() balancerstore.Processes {
	if processes := s.accountProcesses(); processes != nil {
		return processes
	}
	return nil
}
