// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	runtimecluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/balancer"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/network/exposure"
	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/loadbalancercontroller"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/podnotice"
)

// addBalancers adds the controllers of Services: of type LoadBalancer, and of those that nobody outside the VPC reaches; and that of Events about pods.
func (h *hosted) addBalancers(mgr manager.Manager, scheme *runtime.Scheme, connection *rest.Config, c component.Config, store *machine.Store) error {
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
	plane, err := runtimecluster.New(connection, logged, loadbalancercontroller.ClusterOptions)
	if err != nil {
		return fmt.Errorf("making a cache of the cluster for load balancers: %w", err)
	}
	return loadbalancercontroller.Add(mgr, plane, &balancers{service: h.service, config: c, network: network, store: store})
}

// balancers keeps the load balancers of one cluster in its VPC's file, and has the process that serves them run while there are any.
type balancers struct {
	service *Service
	config  component.Config
	network *vpc.Network
	store   *machine.Store
}

var _ loadbalancercontroller.Balancers = (*balancers)(nil)

// List implements [loadbalancercontroller.Balancers].
func (b *balancers) List() ([]loadbalancer.Balancer, error) {
	all, err := b.network.Balancers()
	return slices.DeleteFunc(all, func(o loadbalancer.Balancer) bool { return o.Cluster != b.config.Cluster.Spec.Name }), err
}

// Ensure implements [loadbalancercontroller.Balancers].
func (b *balancers) Ensure(of loadbalancer.Service, spec loadbalancer.Spec) (loadbalancer.Balancer, error) {
	b.service.balancers.Lock() // two clusters could choose the same address on the host
	defer b.service.balancers.Unlock()
	all, err := b.List()
	if err != nil {
		return loadbalancer.Balancer{}, err
	}
	var made loadbalancer.Balancer
	at := slices.IndexFunc(all, func(o loadbalancer.Balancer) bool { return o.UID == of.UID })
	switch {
	case at >= 0:
		made = all[at]
		made.Spec = spec
		noAddress := b.addressOnHost(&made)
		if noAddress != nil { // what it serves in the VPC, and whom, must not stay as it was
			made.Internal = true
		}
		err = errors.Join(noAddress, b.network.SetBalancer(made))
	case len(all) >= loadbalancer.MaxPerCluster:
		err = loadbalancer.ErrTooMany
	default:
		made, err = b.choose(of, spec)
	}
	if err != nil {
		return made, err
	}
	return made, b.run()
}

// choose gives a new balancer addresses. The one in the VPC is in the VPC's list before anybody else can have it.
func (b *balancers) choose(of loadbalancer.Service, spec loadbalancer.Spec) (loadbalancer.Balancer, error) {
	cluster := b.config.Cluster.Spec.Name
	made := loadbalancer.Balancer{
		Cluster: cluster, Namespace: of.Namespace, Service: of.Name, UID: of.UID,
		DNSName: loadbalancer.DNSName(cluster, of.Namespace, of.Name, of.UID, b.config.Region.Name), Spec: spec,
	}
	err := b.addressOnHost(&made)
	if err != nil {
		return made, err
	}
	for _, subnet := range b.config.Network.SubnetIDs() {
		err = b.store.Reserve([]string{subnet}, func(addresses []netip.Addr) error {
			made.Address = addresses[0]
			return b.network.SetBalancer(made)
		})
		if !errors.Is(err, machine.ErrSubnetFull) {
			return made, err
		}
	}
	return made, fmt.Errorf("%w: %w", loadbalancer.ErrNoAddress, err)
}

// addressOnHost gives a balancer that needs one an address on the host, which it keeps whatever range is chosen later.
func (b *balancers) addressOnHost(of *loadbalancer.Balancer) error {
	if of.HostAddress.IsValid() || !of.OnHost() {
		return nil
	}
	within, err := balancerrange.Read(b.config.State)
	if err != nil {
		return err
	}
	taken, err := balancerrange.Taken(b.config.State)
	if err != nil {
		return err
	}
	of.HostAddress, err = loadbalancer.HostAddress(within, of.UID, func(a netip.Addr) bool { return taken[a] })
	return err
}

// Release implements [loadbalancercontroller.Balancers].
func (b *balancers) Release(ctx context.Context, match func(loadbalancer.Balancer) bool) error {
	own, err := b.List()
	if err != nil || !slices.ContainsFunc(own, match) {
		return err
	}
	b.service.balancers.Lock()
	defer b.service.balancers.Unlock()
	cluster := b.config.Cluster.Spec.Name
	if err := b.network.RemoveBalancers(func(o loadbalancer.Balancer) bool { return o.Cluster == cluster && match(o) }); err != nil {
		return err
	}
	return b.service.endBalancer(ctx, b.config.Account, b.network)
}

// run has the process run. The lock is held.
func (b *balancers) run() error {
	supervisor := b.service.accountSupervisor()
	if supervisor == nil {
		return errors.New("the account's processes are not supervised yet")
	}
	return supervisor.Add(component.BalancerSpec(b.config.Account, b.network.ID()))
}

// Status implements [loadbalancercontroller.Balancers].
func (b *balancers) Status(ctx context.Context) (balancer.Status, error) {
	return balancer.AskStatus(ctx, b.config.State.BalancerSocket(b.network.ID()))
}

// removeBalancers removes the load balancers of a cluster from the VPCs.
func (s *Service) removeBalancers(ctx context.Context, account component.Account, cluster string) error {
	s.balancers.Lock()
	defer s.balancers.Unlock()
	all, err := vpc.List(account.State.VPCs())
	if err != nil {
		return err
	}
	for _, description := range all {
		network, err := vpc.Open(account.State.VPCs(), description.ID)
		if err == nil {
			err = network.RemoveBalancers(func(b loadbalancer.Balancer) bool { return b.Cluster == cluster })
		}
		if err != nil {
			return fmt.Errorf("removing the load balancers of cluster %s from %s: %w", cluster, description.ID, err)
		}
		if err := s.endBalancer(ctx, account, network); err != nil {
			return err
		}
	}
	return nil
}

// endBalancer ends the process of a VPC that has no load balancers. The lock is held.
func (s *Service) endBalancer(ctx context.Context, account component.Account, network *vpc.Network) error {
	left, err := network.Balancers()
	supervisor := s.accountSupervisor()
	if err != nil || len(left) > 0 || supervisor == nil {
		return err
	}
	return supervisor.Remove(ctx, component.BalancerSpec(account, network.ID()))
}
