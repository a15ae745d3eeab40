// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/securitygroup"
)

const (
	// MaxBalancersFile is how many bytes the file with the load balancers of a VPC may have.
	MaxBalancersFile = 64 << 20
	// balancersGroup is the security group that all load balancers of a VPC are in besides those of their clusters' API
	// servers. Nobody made it: ids of groups that are made have 17 digits. A balancer itself says who may connect, and
	// to a machine it gets as far as the machine's groups let it.
	balancersGroup = "sg-00000000"
)

// balancersFile has the load balancers of a VPC, sorted by cluster and UID.
var balancersFile = listFile[loadbalancer.Balancer]{
	name: "balancers.json", key: "balancers", what: "load balancers of the VPC", most: MaxBalancersFile, fix: ": remove the file, and the service writes it again",
	compare:  func(a, b loadbalancer.Balancer) int { return strings.Compare(a.Cluster+"/"+a.UID, b.Cluster+"/"+b.UID) },
	equal:    sameBalancer,
	validate: (*Network).validateBalancers,
}

// BalancersPath is the file with the load balancers of the VPC.
func (n *Network) BalancersPath() string { return balancersFile.path(n) }

// Balancers reads the load balancers of the VPC, sorted by cluster and UID.
func (n *Network) Balancers() ([]loadbalancer.Balancer, error) { return balancersFile.read(n) }

// SetBalancer adds a load balancer, or replaces that of the same Service. The process of the load balancers follows
// within a moment.
func (n *Network) SetBalancer(balancer loadbalancer.Balancer) error {
	return n.changeBalancers(func(all []loadbalancer.Balancer) []loadbalancer.Balancer {
		for i, other := range all {
			if other.UID == balancer.UID && other.Cluster == balancer.Cluster {
				all[i] = balancer
				return all
			}
		}
		return append(all, balancer)
	})
}

// RemoveBalancers removes those that match, if there are any, and frees their addresses.
func (n *Network) RemoveBalancers(match func(loadbalancer.Balancer) bool) error {
	return n.changeBalancers(func(all []loadbalancer.Balancer) []loadbalancer.Balancer { return slices.DeleteFunc(all, match) })
}

func (n *Network) changeBalancers(change func([]loadbalancer.Balancer) []loadbalancer.Balancer) error {
	unlock, err := n.lock()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("changing load balancers: the VPC %s has gone: %w", n.id, err)
	}
	if err != nil {
		return err
	}
	defer unlock()
	changed, err := balancersFile.change(n, change)
	if err != nil || !changed {
		return err
	}
	return n.enforce()
}

func sameBalancer(a, b loadbalancer.Balancer) bool {
	return a.UID == b.UID && a.Cluster == b.Cluster && a.Namespace == b.Namespace && a.Service == b.Service && a.DNSName == b.DNSName &&
		a.Address == b.Address && a.HostAddress == b.HostAddress && a.Equal(b.Spec)
}

// validateBalancers checks load balancers, each alone and beside the others: nothing of one is another's.
func (n *Network) validateBalancers(all []loadbalancer.Balancer) error {
	seen := map[string]string{}
	for _, b := range all {
		name := b.Cluster + "/" + b.Namespace + "/" + b.Service
		if err := b.Validate(); err != nil {
			return fmt.Errorf("load balancer of %s: %w", name, err)
		}
		subnet, err := n.subnetOf(b.Address)
		if err != nil {
			return fmt.Errorf("load balancer of %s: %w", name, err)
		}
		if isReserved(subnet, b.Address) || slices.Contains(n.own(), b.Address) {
			return fmt.Errorf("load balancer of %s: the address %s is reserved", name, b.Address)
		}
		unique := []string{b.Cluster + "/" + b.UID, b.DNSName, b.Address.String()}
		if b.HostAddress.IsValid() {
			unique = append(unique, b.HostAddress.String())
		}
		for _, own := range unique {
			if other, twice := seen[own]; twice {
				return fmt.Errorf("load balancer of %s: that of %s has %s, too", name, other, own)
			}
			seen[own] = name
		}
	}
	return nil
}

// balancerMembers are the load balancers as security groups know them.
func balancerMembers(balancers []loadbalancer.Balancer, endpoints []Endpoint) []securitygroup.Member {
	members := make([]securitygroup.Member, 0, len(balancers))
	for _, b := range balancers {
		groups := []string{balancersGroup}
		for _, e := range endpoints {
			if e.Cluster == b.Cluster {
				groups = append(groups, e.SecurityGroups...)
			}
		}
		members = append(members, securitygroup.Member{Address: b.Address, Groups: groups})
	}
	return members
}

// groupOfBalancers lets everything in and out.
func groupOfBalancers() securitygroup.Group {
	all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	return securitygroup.Group{ID: balancersGroup, Rules: []securitygroup.Rule{
		{Direction: securitygroup.Ingress, Protocol: securitygroup.AllProtocols, CIDR: all},
		{Direction: securitygroup.Egress, Protocol: securitygroup.AllProtocols, CIDR: all},
	}}
}

// EnsureAddresses gives the namespace the addresses that endpoints and load balancers have, beside its own, and takes
// all others from it.
func (n *Network) EnsureAddresses(namespace *os.File) error {
	unlock, err := n.lock() // so that two processes do not undo each other's
	if err != nil {
		return err
	}
	defer unlock()
	taken, err := n.Taken()
	if err != nil {
		return err
	}
	return withHandle(namespace, func(h *netlink.Handle) error {
		return errors.Join(n.unaddress(h, taken), n.address(h, append(n.own(), taken...)))
	})
}
