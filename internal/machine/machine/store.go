// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/removetree"
	"muster.dev/muster/internal/platform/userns"
)

// Record is what is remembered of an instance: it is written before anything boots, so that an address never belongs to
// two.
type Record struct {
	ID             string     `json:"id"`
	PrivateIP      netip.Addr `json:"privateIP"`
	PrivateDNSName string     `json:"privateDNSName"`
	Domain         string     `json:"domain"`
	Region         string     `json:"region"`
	// Zone is the availability zone, that of the subnet, and ZoneID what all accounts call it by.
	Zone       string    `json:"zone"`
	ZoneID     string    `json:"zoneID"`
	Provider   string    `json:"provider"`
	LaunchTime time.Time `json:"launchTime"`
	// Type, DiskSize and HopLimit are what the instance was first launched with; see LaunchRequest.
	Type     string `json:"type,omitempty"`
	DiskSize int    `json:"diskSize,omitempty"`
	HopLimit int    `json:"hopLimit,omitempty"`
	ImageID  string `json:"imageID,omitempty"`
	// Key is the key pair whose owner may log in, as it was at the first launch.
	Key Key `json:"key,omitzero"`
	// Scaled reports whether the instance is of an Auto Scaling group.
	Scaled bool `json:"scaled,omitempty"`
	// Spot reports whether it is a spot instance.
	Spot bool `json:"spot,omitempty"`
	// Lifecycle is the state that it is to get to there; see LaunchRequest.
	Lifecycle string `json:"lifecycle,omitempty"`
	// SimulatePods is what the instance was first launched with; see LaunchRequest.
	SimulatePods bool `json:"simulatePods,omitempty"`
	// VPC and Subnet say where the address is: two VPCs may have the same ones.
	VPC    string `json:"vpc"`
	Subnet string `json:"subnet"`
	// PodRange is the range of a subnet that its pods have their addresses of, assigned in the same write as its own;
	// not valid if they have none.
	PodRange netip.Prefix `json:"podRange,omitzero"`
	// PodSubnet is the id of that subnet, if it is not the instance's own.
	PodSubnet string `json:"podSubnet,omitempty"`
	// Cluster is the name of the cluster that the instance was launched for.
	Cluster string `json:"cluster,omitempty"`
	// IDs are what the users and groups of the instance are on the host, if it has a user namespace of its own.
	IDs userns.IDs `json:"ids,omitzero"`
}

// StoreConfig says where records are kept and which names and addresses they get.
type StoreConfig struct {
	// Dir holds a directory for each instance. Providers share it, and with it the addresses of all VPCs.
	Dir string
	// Subnets lists the subnets of all VPCs as they are now. Nil for a store that is only read.
	Subnets func() ([]Subnet, error)
	// Region has the zones of all subnets. A store that is only read needs none.
	Region region.Region
	// IDs are those of the host that instances with user namespaces of their own share out. Nil if there are none.
	IDs func() (userns.IDs, error)
	Now func() time.Time
}

// Store keeps the records and the user data of instances, a directory for each:
//
//	<dir>/<id>/instance.json   the record, the truth about the instance's name and address
//	<dir>/<id>/user-data       what the instance is told when it asks
//	<dir>/<id>/leaves.json     texts of instance metadata by their path, while a drill announces something
//
// An instance sees neither file. All of it is private to its owner. Writers, in other processes too, wait for each
// other: they could choose one address.
type Store struct {
	config StoreConfig
	known  known
	taken  taken
}

// File names below an instance's directory.
const (
	RecordFile   = "instance.json"
	UserDataFile = "user-data"
	LeavesFile   = "leaves.json"
)

// NewStore checks the configuration.
func NewStore(config StoreConfig) (*Store, error) {
	switch {
	case !filepath.IsAbs(config.Dir):
		return nil, fmt.Errorf("directory of machines %q is not an absolute path", config.Dir)
	case config.Region.Name == "" && config.Subnets != nil:
		return nil, errors.New("machines need a region for their names")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Store{config: config}, nil
}

// Path is the directory of an instance.
func (s *Store) Path(id string) string { return filepath.Join(s.config.Dir, id) }

// Put makes sure that a provider has a record of an instance, with an address that no other has, and replaces the user
// data.
func (s *Store) Put(provider string, request LaunchRequest) (Record, error) {
	record, err := s.ensure(provider, request)
	if err != nil {
		return Record{}, err
	}
	// The user data is written again at every launch; the record alone must survive whatever happens.
	if err := atomicfile.Replace(filepath.Join(s.Path(request.ID), UserDataFile), request.UserData, 0o600); err != nil {
		return Record{}, fmt.Errorf("writing user data: %w", err)
	}
	return record, nil
}

// ensure reads the record of an instance, or makes it. Only this keeps other writers waiting.
func (s *Store) ensure(provider string, request LaunchRequest) (Record, error) {
	w, err := s.lock()
	if err != nil {
		return Record{}, err
	}
	defer w.release()
	record, err := s.read(request.ID)
	if errors.Is(err, ErrNotFound) {
		return s.create(w, provider, request)
	}
	if err == nil && record.Provider != provider {
		err = fmt.Errorf("machine %s belongs to the provider %q", record.ID, record.Provider)
	}
	if err == nil && record.Lifecycle != request.Lifecycle {
		record.Lifecycle = request.Lifecycle
		err = s.write(record)
	}
	return record, err
}

func (s *Store) create(w writing, provider string, request LaunchRequest) (Record, error) {
	id := request.ID
	subnet, grant, err := s.choose(w, Demand{SubnetID: request.SubnetID, Pods: request.Pods, PodSubnetIDs: request.PodSubnetIDs}, request.Avoid)
	if err != nil {
		return Record{}, err
	}
	zone, err := s.config.Region.Zone(subnet.Zone)
	if err != nil {
		return Record{}, fmt.Errorf("the zone of the subnet %s: %w", subnet.ID, err)
	}
	if err := s.count(w); err != nil {
		return Record{}, err
	}
	if err := os.MkdirAll(s.Path(id), 0o700); err != nil {
		return Record{}, fmt.Errorf("making machine's directory: %w", err)
	}
	domain := s.config.Region.Domain()
	record := Record{
		ID: id, PrivateIP: grant.Address, PrivateDNSName: request.NamePrefix + PrivateDNSName(grant.Address, domain), Domain: domain,
		Region: s.config.Region.Name, Zone: zone.Name, ZoneID: zone.ID,
		Provider: provider, LaunchTime: s.config.Now().UTC().Truncate(time.Millisecond),
		Type: request.Type, DiskSize: request.DiskSize, HopLimit: request.HopLimit, ImageID: request.ImageID, Scaled: request.Scaled, Spot: request.Spot, Lifecycle: request.Lifecycle,
		SimulatePods: request.SimulatePods, Key: request.Key,
		VPC: subnet.VPC, Subnet: subnet.ID, PodRange: grant.PodRange, Cluster: request.Cluster,
	}
	if request.OwnIDs {
		if record.IDs, err = s.chooseIDs(); err != nil {
			return Record{}, err
		}
	}
	if grant.PodSubnetID != subnet.ID {
		record.PodSubnet = grant.PodSubnetID
	}
	if err := s.write(record); err != nil {
		return record, err
	}
	s.made(w, record)
	return record, nil
}

// write replaces the record of an instance, or makes it.
func (s *Store) write(record Record) error {
	raw, err := encode(record)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(s.Path(record.ID), RecordFile), raw, 0o600); err != nil {
		return fmt.Errorf("writing record of machine %s: %w", record.ID, err)
	}
	return nil
}

// choose finds what a machine demands in its subnet, or if it names none in the first one with room, without some
// addresses.
func (s *Store) choose(w writing, d Demand, avoid []netip.Addr) (Subnet, Grant, error) {
	subnets, err := s.subnets()
	if err != nil {
		return Subnet{}, Grant{}, err
	}
	records, err := s.all(w)
	if err != nil {
		return Subnet{}, Grant{}, fmt.Errorf("allocating address: those that are taken are not all known: %w", err)
	}
	room := newRoom(subnets, func(of Subnet) []netip.Prefix {
		used := usedOf(of, records)
		for _, address := range avoid {
			used = append(used, single(address))
		}
		return used
	})
	var full error
	for _, subnet := range subnets {
		if d.SubnetID != "" && subnet.ID != d.SubnetID {
			continue
		}
		tried := d
		tried.SubnetID = subnet.ID
		grant, err := room.Take(tried)
		if err == nil {
			return subnet, grant, nil
		}
		if full = err; !errors.Is(err, ErrSubnetFull) {
			break
		}
	}
	if full == nil {
		full = fmt.Errorf("allocating address: there is no subnet %s", d.SubnetID)
	}
	return Subnet{}, Grant{}, full
}

func (s *Store) subnets() ([]Subnet, error) {
	if s.config.Subnets == nil {
		return nil, errors.New("allocating address: this store is only read")
	}
	subnets, err := s.config.Subnets()
	if err == nil && len(subnets) == 0 {
		err = errors.New("there is none")
	}
	if err != nil {
		return nil, fmt.Errorf("allocating address: finding a subnet: %w", err)
	}
	return subnets, nil
}

// Locked calls a function with the records of all providers. While it runs no address is given to anybody: what it
// decides by the addresses that are taken is true when it is done.
func (s *Store) Locked(fn func([]Record) error) error {
	w, err := s.lock()
	if err != nil {
		return err
	}
	defer w.release()
	records, err := s.list()
	if err != nil {
		return err
	}
	return fn(records)
}

// Reserve chooses an address in each of some subnets for something that is not a machine, such as a cluster's endpoint,
// and has them kept by a function. No machine gets one of them meanwhile, and none afterwards if the subnets say that
// they are taken.
func (s *Store) Reserve(ids []string, keep func([]netip.Addr) error) error {
	w, err := s.lock()
	if err != nil {
		return err
	}
	defer w.release()
	addresses := make([]netip.Addr, 0, len(ids))
	for _, id := range ids {
		if id == "" {
			return errors.New("allocating address: no subnet is named")
		}
		_, grant, err := s.choose(w, Demand{SubnetID: id}, nil)
		if err != nil {
			return err
		}
		if slices.Contains(addresses, grant.Address) {
			return fmt.Errorf("allocating address: the subnet %s is named twice", id)
		}
		addresses = append(addresses, grant.Address)
	}
	return keep(addresses)
}

func encode(record Record) ([]byte, error) {
	raw, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding record of machine %s: %w", record.ID, err)
	}
	return append(raw, '\n'), nil
}

// Get reads one record of a provider.
func (s *Store) Get(provider, id string) (Record, error) {
	if ValidateID(id) != nil {
		return Record{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	record, err := s.read(id)
	if err == nil && record.Provider != provider {
		return Record{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return record, err
}

func (s *Store) read(id string) (Record, error) {
	record, err := s.known.read(filepath.Join(s.Path(id), RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	if err == nil && record.ID != id {
		err = fmt.Errorf("%w in %s is of %q: terminate the machine", ErrDamaged, s.Path(id), record.ID)
	}
	return record, err
}

// ReadRecord reads a record's file.
func ReadRecord(path string) (Record, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Record{}, fmt.Errorf("reading machine record: %w", err)
	}
	var record Record
	if err := json.Unmarshal(raw, &record); err != nil {
		return Record{}, fmt.Errorf("%w %s: %w: terminate the machine", ErrDamaged, path, err)
	}
	if r := record.PodRange; r.IsValid() && (!r.Addr().Is4() || r.Masked() != r || r.Bits() == 0) {
		return Record{}, fmt.Errorf("%w %s has %s for pods, which is not a range of IPv4 addresses: terminate the machine", ErrDamaged, path, r)
	}
	if !record.PrivateIP.IsValid() || record.PrivateDNSName == "" || record.Zone == "" {
		return Record{}, fmt.Errorf("%w %s lacks an address, a name or a zone: terminate the machine", ErrDamaged, path)
	}
	return record, nil
}

// UserData reads what an instance is told; ErrNotFound if it was told nothing, or is none.
func (s *Store) UserData(id string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(s.Path(id), UserDataFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(raw) == 0 {
		return nil, fmt.Errorf("%w: no user data of %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, fmt.Errorf("reading user data of machine %s: %w", id, err)
	}
	return raw, nil
}

// Delete removes everything of an instance; its record goes last, since its address is taken as long as anything is
// left.
func (s *Store) Delete(id string) error {
	entries, err := os.ReadDir(s.Path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing machine %s: %w", id, err)
	}
	for _, entry := range entries {
		if entry.Name() == RecordFile {
			continue
		}
		if err := removetree.RemoveAll(filepath.Join(s.Path(id), entry.Name())); err != nil {
			return fmt.Errorf("removing machine %s: %w", id, err)
		}
	}
	w, err := s.lock()
	if err != nil {
		return err
	}
	defer w.release()
	_ = s.count(w) // on a full disk it may fail: others think for a second more that the addresses are taken
	if err := os.RemoveAll(s.Path(id)); err != nil {
		return fmt.Errorf("removing machine %s: %w", id, err)
	}
	s.removed(w, id)
	return nil
}

// InstanceType is the instance type that the instance says it is.
func (r Record) InstanceType() string { return cmp.Or(r.Type, DefaultType) }

// Instance is the record as the provider reports it.
func (r Record) Instance(state State) Instance {
	return Instance{ID: r.ID, State: state, PrivateIP: r.PrivateIP, PrivateDNSName: r.PrivateDNSName, PodRange: r.PodRange, Zone: r.Zone, LaunchTime: r.LaunchTime, OwnIDs: r.IDs.Own(), DiskSize: cmp.Or(r.DiskSize, DefaultDiskSize), Lifecycle: r.Lifecycle}
}
