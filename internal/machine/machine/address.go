// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net/netip"
	"strings"
)

// Subnet is a part of a VPC's addresses, in one zone.
type Subnet struct {
	// ID, VPC and Zone are as EC2 writes them: subnet-0123456789abcdef0, vpc-0123456789abcdef0, us-east-1a.
	ID   string
	VPC  string
	Zone string
	CIDR netip.Prefix
	// Taken are addresses of the subnet that are not for machines, beside those that every subnet reserves: those of
	// clusters' endpoints.
	Taken []netip.Addr
}

// Allocate chooses what a machine is given in a subnet of which some addresses and ranges are used: the lowest address
// that nobody has, and the highest range for a number of pods, if that is not 0.
func Allocate(subnet netip.Prefix, used []netip.Prefix, pods int) (address netip.Addr, podRange netip.Prefix, err error) {
	const id = "subnet"
	room := newRoom([]Subnet{{ID: id, CIDR: subnet}}, func(Subnet) []netip.Prefix { return used })
	grant, err := room.Take(Demand{SubnetID: id, Pods: pods})
	return grant.Address, grant.PodRange, err
}

func single(address netip.Addr) netip.Prefix { return netip.PrefixFrom(address, address.BitLen()) }

// PrivateDNSName is the name of the machine with an address, as EC2 forms it: ip-192-168-64-11.<domain>.
func PrivateDNSName(address netip.Addr, domain string) string {
	return namePrefix + strings.ReplaceAll(address.String(), ".", "-") + "." + domain
}

const namePrefix = "ip-"

// AddressOfName returns the address that the private DNS name of a machine was formed of, which may have a prefix. It
// is false for another name.
func AddressOfName(name string) (netip.Addr, bool) {
	host, _, _ := strings.Cut(name, ".")
	at := strings.LastIndex(host, namePrefix)
	if at < 0 {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(strings.ReplaceAll(host[at+len(namePrefix):], "-", "."))
	return address, err == nil
}
