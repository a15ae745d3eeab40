// SPDX-License-Identifier: Apache-2.0

// Package balancerrange keeps the range of the host's addresses that new load balancers have, in loadbalancers.json,
// and says which addresses of the host are taken. No VPC of the account has an address of the range: pods could not
// tell it from a machine's.
//
// What happens if
//
//	the file is missing    the range is the default, which is the loopback's and so opens nothing to others
//	it is damaged          no load balancer gets an address on the host until the range is chosen again
//	the range changes      load balancers keep the addresses that they have
package balancerrange

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"

	kjson "sigs.k8s.io/json"

	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// version is that of the file's form.
const version = 1

// file is the range on disk.
type file struct {
	Version int    `json:"version"`
	Range   string `json:"range"`
}

// Read reads which range of the host new load balancers have addresses of.
func Read(dir statedir.Dir) (netip.Prefix, error) {
	raw, err := os.ReadFile(dir.LoadBalancers())
	if errors.Is(err, fs.ErrNotExist) {
		return loadbalancer.DefaultRange, nil
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("reading the range of load balancers: %w", err)
	}
	var kept file
	strict, err := kjson.UnmarshalStrict(raw, &kept)
	if err == nil {
		err = errors.Join(strict...)
	}
	if err == nil && kept.Version != version {
		err = fmt.Errorf("version is %d and must be %d", kept.Version, version)
	}
	var within netip.Prefix
	if err == nil {
		within, err = loadbalancer.ParseRange(kept.Range)
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%s is damaged: %w; choose the range again by `muster up --load-balancer-range CIDR`", dir.LoadBalancers(), err)
	}
	return within, nil
}

// OfHost are the addresses of the host that machines may reach load balancers by: the range of new ones, and those that
// there are. No VPC has them.
func OfHost(dir statedir.Dir) ([]netip.Prefix, error) {
	within, err := Read(dir)
	if err != nil {
		return nil, err
	}
	taken, err := Taken(dir)
	if err != nil {
		return nil, err
	}
	ranges := []netip.Prefix{within}
	for _, address := range slices.SortedFunc(maps.Keys(taken), netip.Addr.Compare) {
		if address.IsValid() { // an internal one has none
			ranges = append(ranges, netip.PrefixFrom(address, address.BitLen()))
		}
	}
	return ranges, nil
}

// Taken are the addresses of the host that load balancers of any VPC have, and the account's own.
func Taken(dir statedir.Dir) (map[netip.Addr]bool, error) {
	own, err := account.Read(dir)
	if err != nil {
		return nil, err
	}
	all, err := vpc.List(dir.VPCs())
	if err != nil {
		return nil, err
	}
	taken := map[netip.Addr]bool{own.Address: true}
	for _, description := range all {
		network, err := vpc.Open(dir.VPCs(), description.ID)
		if err != nil {
			return nil, err
		}
		list, err := network.Balancers()
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			taken[o.HostAddress] = true
		}
	}
	return taken, nil
}

// Check refuses a range that is a VPC's, also one of the default VPC that a new account will have. A range that is not
// valid stands for none.
func Check(dir statedir.Dir, within netip.Prefix) error {
	if !within.IsValid() {
		return nil
	}
	all, err := vpc.List(dir.VPCs())
	if err != nil {
		return err
	}
	if !dir.Exists() {
		all = append(all, vpc.NewDefault(nil, egresspolicy.NAT, func(prefix string) string { return prefix + "default" }))
	}
	for _, network := range all {
		if network.CIDR.Overlaps(within) {
			return fmt.Errorf("%s overlaps %s, the range of VPC %s: choose another one", within, network.CIDR, network.ID)
		}
	}
	return nil
}

// Keep records the range that was asked for, if it is valid. A service that runs reads it before it gives a load
// balancer an address.
func Keep(dir statedir.Dir, within netip.Prefix) (changed bool, err error) {
	if !within.IsValid() {
		return false, nil
	}
	if kept, err := Read(dir); err == nil && kept == within {
		return false, nil
	}
	raw, err := json.MarshalIndent(file{version, within.String()}, "", "  ")
	if err != nil {
		return false, fmt.Errorf("encoding the range of load balancers: %w", err)
	}
	return true, atomicfile.Write(dir.LoadBalancers(), append(raw, '\n'), 0o600)
}
