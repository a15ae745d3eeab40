// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// ErrNoPodSubnet says that none of the subnets for pods is in the zone of a machine.
var ErrNoPodSubnet = errors.New("there is no subnet for pods in the zone")

// Demand is what a machine needs of the subnets of a VPC.
type Demand struct {
	// SubnetID is the subnet of its own address.
	SubnetID string
	// Pods is how many pods it needs a range of addresses for; 0 if it needs none.
	Pods int
	// PodSubnetIDs are the subnets that the range may be of: the first one in the machine's zone that has room. Empty
	// means the machine's own.
	PodSubnetIDs []string
}

// Grant is what a machine gets.
type Grant struct {
	Address netip.Addr
	// PodRange is not valid if it needs none. PodSubnetID is the subnet that it is of.
	PodRange    netip.Prefix
	PodSubnetID string
}

// Room is what is left of some subnets. Whatever is taken of it is written nowhere: the records of machines are what
// counts.
type Room struct {
	subnets []Subnet
	used    func(Subnet) []netip.Prefix
	pools   map[string]*pool // by the subnet's id, of those that were asked for
}

// NewRoom is what is left by the usage of the subnets of a VPC.
func NewRoom(usage []Usage) *Room {
	subnets := make([]Subnet, 0, len(usage))
	used := map[string][]netip.Prefix{}
	for _, u := range usage {
		subnets = append(subnets, u.Subnet)
		used[u.ID] = u.Used
	}
	return newRoom(subnets, func(s Subnet) []netip.Prefix { return used[s.ID] })
}

func newRoom(subnets []Subnet, used func(Subnet) []netip.Prefix) *Room {
	return &Room{subnets: subnets, used: used, pools: map[string]*pool{}}
}

// Take gives a machine what it needs. If it cannot have all, it gets nothing: the error is [ErrSubnetFull] or
// [ErrNoPodSubnet], or says that there is no such subnet.
func (r *Room) Take(d Demand) (Grant, error) {
	subnet, err := r.subnet(d.SubnetID)
	if err != nil {
		return Grant{}, err
	}
	if d.Pods == 0 {
		return r.take(subnet, subnet, 0)
	}
	among, err := r.podSubnets(subnet, d.PodSubnetIDs)
	if err != nil {
		return Grant{}, err
	}
	var full error
	for _, of := range among {
		grant, err := r.take(subnet, of, d.Pods)
		if err == nil || !errors.Is(err, ErrSubnetFull) {
			return grant, err
		}
		if full != nil {
			err = fmt.Errorf("%w; %w", full, err)
		}
		full = err
	}
	return Grant{}, full
}

// podSubnets are those of some subnets in which pods of a machine in a subnet may have addresses, in their order.
func (r *Room) podSubnets(machines Subnet, ids []string) ([]Subnet, error) {
	if len(ids) == 0 {
		return []Subnet{machines}, nil
	}
	var among []Subnet
	for _, id := range ids {
		if s, err := r.subnet(id); err == nil && s.VPC == machines.VPC && s.Zone == machines.Zone {
			among = append(among, s)
		}
	}
	if len(among) == 0 {
		return nil, fmt.Errorf("allocating addresses of pods: %w %s of the subnet %s: launch the machine in a zone that has one", ErrNoPodSubnet, machines.Zone, machines.ID)
	}
	return among, nil
}

// take takes an address of one subnet and a range of another, which may be the same, or neither.
func (r *Room) take(subnet, podSubnet Subnet, pods int) (Grant, error) {
	own, err := r.pool(subnet)
	if err != nil {
		return Grant{}, err
	}
	grant := Grant{}
	if pods > 0 {
		of, err := r.pool(podSubnet)
		if err != nil {
			return Grant{}, err
		}
		before := slices.Clone(of.used)
		if grant.PodRange, err = of.podRange(PodRangeBits(pods)); err != nil {
			return Grant{}, err
		}
		grant.PodSubnetID = podSubnet.ID
		if grant.Address, err = own.address(); err != nil {
			of.used = before
			return Grant{}, err
		}
		return grant, nil
	}
	grant.Address, err = own.address()
	return grant, err
}

func (r *Room) subnet(id string) (Subnet, error) {
	at := slices.IndexFunc(r.subnets, func(s Subnet) bool { return s.ID == id })
	if at < 0 {
		return Subnet{}, fmt.Errorf("allocating address: there is no subnet %s", id)
	}
	return r.subnets[at], nil
}

func (r *Room) pool(of Subnet) (*pool, error) {
	if p := r.pools[of.ID]; p != nil {
		return p, nil
	}
	p, err := newPool(of.CIDR, r.used(of))
	if err == nil {
		p.name = of.ID + ", " + of.CIDR.String()
		r.pools[of.ID] = p
	}
	return p, err
}
