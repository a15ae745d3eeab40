// SPDX-License-Identifier: Apache-2.0

package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// Directory finds the machine of an address in one VPC, for the instance metadata service. It reads the records
// themselves, each time; what it keeps is only where to look. Machines of other VPCs, which may have the same
// addresses, are not in it.
type Directory struct {
	store *machine.Store
	root  string // of all VPCs
	id    string // of this one

	mutex sync.Mutex
	ids   map[netip.Addr]string
}

var (
	_ imds.Directory = (*Directory)(nil)
	_ vpc.Machines   = (*Directory)(nil)
)

// NewDirectory makes the directory of a VPC's machines below a state directory.
func NewDirectory(dir statedir.Dir, id string) (*Directory, error) {
	if err := vpc.ValidateID(id); err != nil {
		return nil, err
	}
	store, err := machine.NewStore(machine.StoreConfig{Dir: dir.Machines()}) // which makes no records
	if err != nil {
		return nil, err
	}
	return &Directory{store: store, root: dir.VPCs(), id: id, ids: map[netip.Addr]string{}}, nil
}

// Lookup implements [imds.Directory]. The address of a pod is that of the machine whose range it is in, or that the VPC
// routes it to.
func (d *Directory) Lookup(address netip.Addr) (imds.Instance, error) {
	description, err := vpc.Read(d.root, d.id)
	if err != nil {
		return imds.Instance{}, err
	}
	if !description.CIDR.Contains(address) {
		machine, err := d.routed(address)
		if err != nil {
			return imds.Instance{}, err
		}
		address = machine
	}
	record, err := d.record(address)
	if err != nil {
		return imds.Instance{}, err
	}
	leaves, err := d.store.Leaves(record.ID)
	if err != nil {
		return imds.Instance{}, err
	}
	return imds.Instance{
		Leaves: leaves,
		ID:     record.ID, Type: record.InstanceType(), PrivateIP: record.PrivateIP, PrivateDNSName: record.PrivateDNSName, MAC: vpc.MAC(record.PrivateIP),
		Region: record.Region, Zone: record.Zone, ZoneID: record.ZoneID,
		LaunchTime: record.LaunchTime, Network: description.CIDR, VPCID: d.id, SubnetID: record.Subnet, Subnet: subnetOf(description, record), PodRange: record.PodRange,
		HopLimit: max(record.HopLimit, 1), AccountID: account.DefaultID, ImageID: record.ImageID, Scaled: record.Scaled, Spot: record.Spot, Lifecycle: record.Lifecycle,
		KeyName: record.Key.Name, PublicKey: record.Key.Public,
		SecurityGroupIDs: d.securityGroups(record), APIServers: d.apiServers(),
	}, nil
}

// apiServers are those of the clusters that have an address in the VPC. A list that cannot be read leaves them out.
func (d *Directory) apiServers() map[netip.AddrPort]string {
	network, err := vpc.Open(d.root, d.id)
	if err != nil {
		return nil
	}
	all, err := network.Endpoints()
	if err != nil {
		return nil
	}
	servers := map[netip.AddrPort]string{}
	for _, endpoint := range all {
		if url := endpoint.URL(); url != "" {
			servers[endpoint.APIServer] = url
		}
	}
	return servers
}

// securityGroups are those that a machine is in. A list that cannot be read leaves them out: what is in force does not
// depend on it.
func (d *Directory) securityGroups(record machine.Record) []string {
	network, err := vpc.Open(d.root, d.id)
	if err != nil {
		return nil
	}
	groups, err := network.SecurityGroups(record.ID)
	if err != nil {
		return nil
	}
	return groups
}

// subnetOf is the range of a machine's subnet; all of the VPC's if the subnet is gone, which it is not while machines
// are in it.
func subnetOf(description vpc.Description, record machine.Record) netip.Prefix {
	for _, subnet := range description.Subnets {
		if subnet.ID == record.Subnet {
			return subnet.CIDR
		}
	}
	return description.CIDR
}

// Cluster implements [vpc.Machines].
func (d *Directory) Cluster(address netip.Addr) (name string, known bool, err error) {
	record, err := d.record(address)
	if errors.Is(err, imds.ErrNotFound) {
		return "", false, nil
	}
	return record.Cluster, err == nil, err
}

// ClusterOfPod returns the name of the cluster whose machine has an address for its pods; false for a machine's own
// address and for nobody's.
func (d *Directory) ClusterOfPod(address netip.Addr) (name string, ok bool, err error) {
	record, err := d.record(address)
	if errors.Is(err, imds.ErrNotFound) {
		return "", false, nil
	}
	return record.Cluster, err == nil && record.PrivateIP != address && record.PodRange.Contains(address), err
}

// routed is the machine that a pod's address is behind.
func (d *Directory) routed(address netip.Addr) (netip.Addr, error) {
	network, err := vpc.Open(d.root, d.id)
	if err != nil {
		return netip.Addr{}, err
	}
	routes, err := network.Routes()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, route := range routes {
		if route.PodCIDR.Contains(address) {
			return route.Machine, nil
		}
	}
	return netip.Addr{}, notFound(address)
}

// record finds the record with an address, or with a range of pods that has it. The list of all is read only for an
// address that is new, or has changed hands.
func (d *Directory) record(address netip.Addr) (machine.Record, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if id, ok := d.ids[address]; ok {
		record, err := d.store.Get(providerName, id)
		if err == nil && d.has(record, address) {
			return record, nil
		}
		delete(d.ids, address)
		if err != nil && !errors.Is(err, machine.ErrNotFound) {
			return machine.Record{}, err
		}
	}
	records, err := d.store.List(providerName)
	for _, record := range records {
		if d.has(record, address) {
			d.ids[address] = record.ID
			return record, nil
		}
	}
	if err != nil { // the address may be that of a machine whose record is damaged
		return machine.Record{}, err
	}
	return machine.Record{}, notFound(address)
}

func (d *Directory) has(record machine.Record, address netip.Addr) bool {
	return record.VPC == d.id && (record.PrivateIP == address || record.PodRange.Contains(address))
}

func notFound(address netip.Addr) error {
	return fmt.Errorf("%w: no machine has the address %s", imds.ErrNotFound, address)
}

// Machines lists the records of the VPC's machines, sorted by id. If records are damaged, it returns the others and an
// error that is [machine.ErrDamaged].
func (d *Directory) Machines() ([]machine.Record, error) {
	records, err := d.store.List(providerName)
	return slices.DeleteFunc(records, func(r machine.Record) bool { return r.VPC != d.id }), err
}

// UserData implements [imds.Directory].
func (d *Directory) UserData(id string) ([]byte, error) {
	raw, err := d.store.UserData(id)
	if errors.Is(err, machine.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", imds.ErrNotFound, err)
	}
	return raw, err
}

// metadataKeySize is what [imds.ServerConfig] asks for.
const metadataKeySize = 32

// MetadataKey reads the key that seals tokens of a VPC's metadata service, or makes it: a server that is started again
// honours those that its machines have.
func MetadataKey(dir statedir.Dir, id string) ([]byte, error) {
	path := dir.MetadataKey(id)
	key, err := os.ReadFile(path)
	switch {
	case err == nil && len(key) == metadataKeySize:
		return key, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading key of the metadata service: %w", err)
	}
	key = make([]byte, metadataKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("making key of the metadata service: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making directory for the key of the metadata service: %w", err)
	}
	return key, atomicfile.Write(path, key, 0o600)
}
