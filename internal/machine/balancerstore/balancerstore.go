// SPDX-License-Identifier: Apache-2.0

// Package balancerstore keeps the load balancers of clusters: it gives them addresses in their VPC and on the host,
// writes them to the file of their VPC, and has the process that serves them run while there are any.
//
// An address in the VPC is in the list of the VPC before a machine can get it; an address on the host is chosen under
// one lock for all clusters. A balancer that is to listen on the host and finds no address there serves in the VPC
// alone.
package balancerstore

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/balancer"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
)

// Processes runs the account's processes.
type Processes interface {
	// Add has a process run from now on.
	Add(spec component.Spec) error
	// Remove ends a process.
	Remove(ctx context.Context, spec component.Spec) error
}

// Store keeps the load balancers of all clusters of an account. It is safe for use by many at once.
type Store struct {
	processes func() Processes
	choosing  sync.Mutex // one load balancer is chosen or removed at a time
}

// New makes the store of an account whose processes are nil until they are supervised.
func New(processes func() Processes) *Store { return &Store{processes: processes} }

// Of returns the load balancers of one cluster, in its VPC, with addresses of the subnets that a store of machines
// knows.
func (s *Store) Of(config component.Config, network *vpc.Network, addresses *machine.Store) *Balancers {
	return &Balancers{store: s, config: config, network: network, addresses: addresses}
}

// Balancers keeps the load balancers of one cluster in its VPC's file, and has the process that serves them run while
// there are any.
type Balancers struct {
	store     *Store
	config    component.Config
	network   *vpc.Network
	addresses *machine.Store
}

// List lists the load balancers of the cluster.
func (b *Balancers) List() ([]loadbalancer.Balancer, error) {
	all, err := b.network.Balancers()
	return slices.DeleteFunc(all, func(o loadbalancer.Balancer) bool { return o.Cluster != b.config.Cluster.Spec.Name }), err
}

// Ensure has the balancer of a Service serve what the spec says. A balancer that is new gets addresses that it keeps.
// The error is [loadbalancer.ErrNoAddress] or [loadbalancer.ErrRangeFull] if there is none, in the VPC or on the host,
// and [loadbalancer.ErrTooMany] if the cluster has all that it may have.
func (b *Balancers) Ensure(of loadbalancer.Service, spec loadbalancer.Spec) (loadbalancer.Balancer, error) {
	b.store.choosing.Lock() // two clusters could choose the same address on the host
	defer b.store.choosing.Unlock()
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
		if noAddress != nil { // listeners in the VPC, and their clients, must not stay as they were
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
func (b *Balancers) choose(of loadbalancer.Service, spec loadbalancer.Spec) (loadbalancer.Balancer, error) {
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
		err = b.addresses.Reserve([]string{subnet}, func(addresses []netip.Addr) error {
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
func (b *Balancers) addressOnHost(of *loadbalancer.Balancer) error {
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

// Release removes the balancers of the cluster that match, and frees their addresses.
func (b *Balancers) Release(ctx context.Context, match func(loadbalancer.Balancer) bool) error {
	own, err := b.List()
	if err != nil || !slices.ContainsFunc(own, match) {
		return err
	}
	b.store.choosing.Lock()
	defer b.store.choosing.Unlock()
	cluster := b.config.Cluster.Spec.Name
	if err := b.network.RemoveBalancers(func(o loadbalancer.Balancer) bool { return o.Cluster == cluster && match(o) }); err != nil {
		return err
	}
	return b.store.end(ctx, b.config.Account, b.network)
}

// run has the process run. The lock is held.
func (b *Balancers) run() error {
	processes := b.store.processes()
	if processes == nil {
		return errors.New("the account's processes are not supervised yet")
	}
	return processes.Add(component.BalancerSpec(b.config.Account, b.network.ID()))
}

// Status asks the process that serves the balancers of the VPC. It is an error while that cannot be asked.
func (b *Balancers) Status(ctx context.Context) (balancer.Status, error) {
	return balancer.AskStatus(ctx, b.config.State.BalancerSocket(b.network.ID()))
}

// RemoveCluster removes the load balancers of a cluster from the VPCs of an account.
func (s *Store) RemoveCluster(ctx context.Context, account component.Account, cluster string) error {
	s.choosing.Lock()
	defer s.choosing.Unlock()
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
		if err := s.end(ctx, account, network); err != nil {
			return err
		}
	}
	return nil
}

// end ends the process of a VPC that has no load balancers. The lock is held.
func (s *Store) end(ctx context.Context, account component.Account, network *vpc.Network) error {
	left, err := network.Balancers()
	processes := s.processes()
	if err != nil || len(left) > 0 || processes == nil {
		return err
	}
	return processes.Remove(ctx, component.BalancerSpec(account, network.ID()))
}
