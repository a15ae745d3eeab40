// SPDX-License-Identifier: Apache-2.0

package serve

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

	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// balancerRangeVersion is that of the file's form.
const balancerRangeVersion = 1

// balancerRangeFile is the form on disk.
type balancerRangeFile struct {
	Version int    `json:"version"`
	Range   string `json:"range"`
}

// readBalancerRange reads which range of the host new load balancers have addresses of. Without a file it is the default, which is the loopback's
// and so opens nothing to others.
func readBalancerRange(dir statedir.Dir) (netip.Prefix, error) {
	raw, err := os.ReadFile(dir.LoadBalancers())
	if errors.Is(err, fs.ErrNotExist) {
		return loadbalancer.DefaultRange, nil
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("reading the range of load balancers: %w", err)
	}
	var file balancerRangeFile
	strict, err := kjson.UnmarshalStrict(raw, &file)
	if err == nil {
		err = errors.Join(strict...)
	}
	if err == nil && file.Version != balancerRangeVersion {
		err = fmt.Errorf("version is %d and must be %d", file.Version, balancerRangeVersion)
	}
	var within netip.Prefix
	if err == nil {
		within, err = loadbalancer.ParseRange(file.Range)
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%s is damaged: %w; choose the range again by `muster up --load-balancer-range CIDR`", dir.LoadBalancers(), err)
	}
	return within, nil
}

// hostRanges are the addresses of the host that machines may reach load balancers by: the range of new ones, and those that there are. No VPC has them.
func hostRanges(dir statedir.Dir) ([]netip.Prefix, error) {
	within, err := readBalancerRange(dir)
	if err != nil {
		return nil, err
	}
	taken, err := hostAddresses(dir)
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

// checkBalancerRange refuses a range that is a VPC's: pods could not tell its addresses from machines'.
func (s Session) checkBalancerRange() error {
	if !s.BalancerRange.IsValid() {
		return nil
	}
	all, err := vpc.List(s.State.VPCs())
	if err != nil {
		return err
	}
	if !s.State.Exists() {
		all = append(all, vpc.NewDefault(nil, egresspolicy.NAT, func(prefix string) string { return prefix + "default" }))
	}
	for _, network := range all {
		if network.CIDR.Overlaps(s.BalancerRange) {
			return fmt.Errorf("%s overlaps %s, the range of VPC %s: choose another one", s.BalancerRange, network.CIDR, network.ID)
		}
	}
	return nil
}

// keepBalancerRange records the range that was asked for. A service that runs reads it before it gives a load balancer an address.
func (s Session) keepBalancerRange() (changed bool, err error) {
	if !s.BalancerRange.IsValid() {
		return false, nil
	}
	if kept, err := readBalancerRange(s.State); err == nil && kept == s.BalancerRange {
		return false, nil
	}
	raw, err := json.MarshalIndent(balancerRangeFile{balancerRangeVersion, s.BalancerRange.String()}, "", "  ")
	if err != nil {
		return false, fmt.Errorf("encoding the range of load balancers: %w", err)
	}
	return true, atomicfile.Write(s.State.LoadBalancers(), append(raw, '\n'), 0o600)
}
