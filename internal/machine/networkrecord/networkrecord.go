// SPDX-License-Identifier: Apache-2.0

// Package networkrecord keeps the network of each cluster, as it was chosen once: its VPC, subnets, range of pods,
// security group, and the addresses of its API server. It has the VPC lead to the API server, and describes the default
// VPC of a new account. Package clusternetwork says what may be chosen.
//
// What happens if
//
//	two clusters start at once         they choose one after the other: no range or address is two clusters'
//	a start is cut short               what it put into the list of the VPC is replaced by the next one
//	a subnet for pods is deleted       the cluster does not start, and its condition names the subnet
//	the record of a cluster is lost    a cluster in use does not start: nodes and pods have addresses of the old one
package networkrecord

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// choosing is held while a network is chosen: two clusters could choose the same range.
var choosing sync.Mutex

// DescribeDefault describes the default VPC of an account that starts for the first time, so that nothing waits for the
// management plane. Its objects are made later, as it is described. A default VPC that was deleted does not come back.
func DescribeDefault(dir statedir.Dir, in region.Region, egress egresspolicy.Mode) error {
	all, err := vpc.List(dir.VPCs())
	if err != nil || len(all) > 0 {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir.ManagementEtcd(), "member")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return vpc.Describe(dir.VPCs(), vpc.NewDefault(ZoneNames(in), egress, func(prefix string) string { return prefix + randomID() }))
}

// ZoneNames are the names of the zones of a region.
func ZoneNames(in region.Region) []string {
	names := make([]string, 0, len(in.Zones))
	for _, zone := range in.Zones {
		names = append(names, zone.Name)
	}
	return names
}

// randomID is what comes after the prefix of an id, as EC2 has it: 17 hexadecimal digits.
func randomID() string {
	raw := make([]byte, 9)
	_, _ = rand.Read(raw) // which never fails
	return hex.EncodeToString(raw)[:17]
}

// Described are the account's VPCs as they are described on disk.
func Described(dir statedir.Dir) ([]component.VPC, error) {
	all, err := vpc.List(dir.VPCs())
	found := make([]component.VPC, 0, len(all))
	for _, description := range all {
		one := component.VPC{ID: description.ID, CIDR: description.CIDR, Egress: description.Egress.IsOpen()}
		network, err := vpc.Open(dir.VPCs(), description.ID)
		if err != nil {
			return nil, err
		}
		// A file that cannot be read keeps no VPC from being run: its process says so.
		balancers, err := network.Balancers()
		one.Balancers = err != nil || len(balancers) > 0
		found = append(found, one)
	}
	return found, err
}

// networks are the VPCs that clusters may be in.
func networks(all []vpc.Description) []clusternetwork.VPC {
	found := make([]clusternetwork.VPC, 0, len(all))
	for _, description := range all {
		one := clusternetwork.VPC{ID: description.ID, CIDR: description.CIDR, Default: description.Default}
		for _, subnet := range description.Subnets {
			one.Subnets = append(one.Subnets, clusternetwork.Subnet{ID: subnet.ID, Zone: subnet.Zone, CIDR: subnet.CIDR})
		}
		found = append(found, one)
	}
	return found
}

// Ensure returns the network of a cluster, which is chosen and recorded once and kept, and has its VPC lead to its API
// server. The configuration needs its directory, its Cluster and its ports. A problem that people have to solve is a
// [*clusternetwork.Problem].
func Ensure(c component.Config) (clusternetwork.Network, error) {
	choosing.Lock()
	defer choosing.Unlock()
	n, err := read(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return choose(c)
	}
	if err != nil {
		return n, err
	}
	return n, setEndpoint(c, n)
}

func newSecurityGroupID() string { return "sg-" + randomID() }

// choose resolves the network of a cluster without one, and records it. The addresses of its API server are in the
// VPC's list before they are recorded: no machine gets one in between.
func choose(c component.Config) (clusternetwork.Network, error) {
	if _, err := os.Stat(filepath.Join(c.Dir.Etcd(), "member")); !errors.Is(err, fs.ErrNotExist) {
		return clusternetwork.Network{}, errors.Join(err,
			fmt.Errorf("reading the network of the cluster: %s is missing, and the cluster is in use: restore the file from a backup", c.Dir.Network()))
	}
	if err := RemoveEndpoints(c.State, c.Cluster.Spec.Name); err != nil { // of a start that was cut short
		return clusternetwork.Network{}, err
	}
	n, err := Resolve(c)
	if err != nil {
		return n, err
	}
	n.SecurityGroupID = newSecurityGroupID()
	store, err := machine.NewStore(machine.StoreConfig{Dir: c.State.Machines(), Subnets: local.Subnets(c.State), Region: c.Region})
	if err != nil {
		return n, err
	}
	for _, pair := range n.EndpointPairs() {
		err = store.Reserve(pair, func(addresses []netip.Addr) error {
			n.Addresses = addresses
			if err := arePodSubnets(c, n); err != nil {
				return err
			}
			if err := setEndpoint(c, n); err != nil {
				return err
			}
			return write(c.Dir, n)
		})
		if !errors.Is(err, machine.ErrSubnetFull) {
			break
		}
	}
	if err != nil {
		return n, fmt.Errorf("finding addresses for the API server in %s: %w", n.VPCID, err)
	}
	return n, nil
}

// arePodSubnets checks that the subnets for pods are still those of the VPC, while none can be removed: from then on
// they are in use.
func arePodSubnets(c component.Config, n clusternetwork.Network) error {
	description, err := vpc.Read(c.State.VPCs(), n.VPCID)
	if err != nil {
		return err
	}
	for _, id := range n.PodSubnetIDs() {
		if !slices.ContainsFunc(description.Subnets, func(s vpc.Subnet) bool { return s.ID == id }) {
			return &clusternetwork.Problem{Reason: clusternetwork.ReasonNoSubnet, Message: fmt.Sprintf("spec.network.podSubnetIDs: the subnet %s was deleted: name another one", id)}
		}
	}
	return nil
}

// Resolve is the network that a cluster without one would have now.
func Resolve(c component.Config) (clusternetwork.Network, error) {
	all, err := vpc.List(c.State.VPCs())
	if err != nil {
		return clusternetwork.Network{}, err
	}
	taken, err := takenPodRanges(c)
	if err != nil {
		return clusternetwork.Network{}, err
	}
	return clusternetwork.Resolve(c.Cluster.Spec.Network, networks(all), taken)
}

// setEndpoint has the process of a cluster's VPC lead from the API server's addresses to it.
func setEndpoint(c component.Config, n clusternetwork.Network) error {
	network, err := vpc.Open(c.State.VPCs(), n.VPCID)
	if err != nil {
		return err
	}
	return network.SetEndpoint(vpc.Endpoint{
		Cluster: c.Cluster.Spec.Name, Addresses: n.Addresses, PodCIDR: n.PodCIDR, PodSubnets: n.PodSubnetIDs(),
		EgressSocket: c.State.EgressSocket(c.Dir.Namespace()), WebhookSocket: c.State.WebhookSocket(c.Dir.Namespace()),
		AccountAPIsSocket: statedir.AccountAPIsSocket(c.State, c.Dir.Namespace()),
		APIServer:         c.Places.Published.Reach,
		SecurityGroups:    append([]string{n.SecurityGroupID}, c.Cluster.Spec.SecurityGroupIDs...),
	})
}

// EndpointGroups are the security groups that the API server's addresses are in by now; nil without a VPC.
func EndpointGroups(c component.Config) ([]string, error) {
	if !c.VPC {
		return nil, nil
	}
	n, err := read(c.Dir)
	if err != nil {
		return nil, err
	}
	network, err := vpc.Open(c.State.VPCs(), n.VPCID)
	if err != nil {
		return nil, err
	}
	all, err := network.Endpoints()
	if err != nil {
		return nil, err
	}
	for _, endpoint := range all {
		if endpoint.Cluster == c.Cluster.Spec.Name {
			return endpoint.SecurityGroups, nil
		}
	}
	return nil, nil
}

// takenPodRanges are the ranges of the pods of all other clusters.
func takenPodRanges(c component.Config) ([]clusternetwork.Taken, error) {
	clusters, err := c.State.ListClusters()
	if err != nil {
		return nil, err
	}
	var taken []clusternetwork.Taken
	for _, dir := range clusters {
		if dir == c.Dir {
			continue
		}
		n, err := read(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		taken = append(taken, clusternetwork.Taken{Cluster: dir.Namespace(), VPCID: n.VPCID, PodCIDR: n.PodCIDR})
	}
	return taken, nil
}

// read reads the network of a cluster as it was recorded.
func read(dir statedir.Cluster) (clusternetwork.Network, error) {
	var n clusternetwork.Network
	raw, err := os.ReadFile(dir.Network())
	if err != nil {
		return n, fmt.Errorf("reading the network of the cluster: %w", err)
	}
	err = json.Unmarshal(raw, &n)
	if err == nil {
		err = n.Validate()
	}
	if err != nil {
		return n, fmt.Errorf("reading the network of the cluster: %s is damaged (%w): restore the file from a backup", dir.Network(), err)
	}
	return n, nil
}

func write(dir statedir.Cluster, n clusternetwork.Network) error {
	raw, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the network of the cluster: %w", err)
	}
	return atomicfile.Write(dir.Network(), append(raw, '\n'), 0o600)
}

// Plan is the network of a cluster for a dry run, and the VPCs beside it: what would be chosen at random is shown as
// zeros.
func Plan(dir statedir.Dir, c component.Config) (clusternetwork.Network, []component.VPC, error) {
	all, err := vpc.List(dir.VPCs())
	if err != nil {
		return clusternetwork.Network{}, nil, err
	}
	if len(all) == 0 {
		n := 0
		all = []vpc.Description{vpc.NewDefault(ZoneNames(c.Region), egresspolicy.NAT, func(prefix string) string {
			n++
			return fmt.Sprintf("%s%017d", prefix, n-1)
		})}
	}
	vpcs := make([]component.VPC, 0, len(all))
	for _, description := range all {
		vpcs = append(vpcs, component.VPC{ID: description.ID, CIDR: description.CIDR, Egress: description.Egress.IsOpen()})
	}
	n, err := read(c.Dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return n, vpcs, err
	}
	taken, err := takenPodRanges(c)
	if err != nil {
		return n, vpcs, err
	}
	if n, err = clusternetwork.Resolve(c.Cluster.Spec.Network, networks(all), taken); err != nil {
		return n, vpcs, err
	}
	for _, id := range n.EndpointPairs()[0] {
		for _, subnet := range n.Subnets {
			if subnet.ID == id {
				address, _, err := machine.Allocate(subnet.CIDR, nil, 0)
				if err != nil {
					return n, vpcs, err
				}
				n.Addresses = append(n.Addresses, address)
			}
		}
	}
	return n, vpcs, nil
}
