// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"

	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/platform/atomicfile"
)

// Description is what is kept of a VPC on disk: all that its process, and the providers that attach machines, must know
// of it.
type Description struct {
	// Version is that of the file's format, 1.
	Version int          `json:"version"`
	ID      string       `json:"id"`
	CIDR    netip.Prefix `json:"cidr"`
	// Default says that it is the account's default VPC.
	Default bool `json:"default,omitempty"`
	// Egress is its way out.
	Egress  egresspolicy.Policy `json:"egress,omitzero"`
	Subnets []Subnet            `json:"subnets"`
}

// Subnet is a part of a VPC's range, in one zone.
type Subnet struct {
	ID   string       `json:"id"`
	Zone string       `json:"zone"`
	CIDR netip.Prefix `json:"cidr"`
}

// descriptionFile is below a VPC's directory.
const descriptionFile = "network.json"

// descriptionVersion is the version of its format.
const descriptionVersion = 1

var (
	vpcPattern    = regexp.MustCompile(`^vpc-[0-9a-f]{17}$`)
	subnetPattern = regexp.MustCompile(`^subnet-[0-9a-f]{17}$`)
)

// ValidateID checks the form of a VPC's id. An id names a directory too.
func ValidateID(id string) error {
	if !vpcPattern.MatchString(id) {
		return fmt.Errorf("invalid VPC id %q: must be vpc- and 17 hexadecimal digits", id)
	}
	return nil
}

func (d Description) validate() error {
	if d.Version != descriptionVersion {
		return fmt.Errorf("version is %d, want %d", d.Version, descriptionVersion)
	}
	if err := ValidateID(d.ID); err != nil {
		return err
	}
	if err := validateRange("VPC CIDR", d.CIDR); err != nil {
		return err
	}
	if err := d.Egress.Validate(); err != nil {
		return err
	}
	for i, subnet := range d.Subnets {
		if !subnetPattern.MatchString(subnet.ID) {
			return fmt.Errorf("invalid subnet id %q: must be subnet- and 17 hexadecimal digits", subnet.ID)
		}
		if err := validateRange("CIDR of "+subnet.ID, subnet.CIDR); err != nil {
			return err
		}
		if !within(subnet.CIDR, d.CIDR) {
			return fmt.Errorf("CIDR of %s: %s is not within the VPC's range %s", subnet.ID, subnet.CIDR, d.CIDR)
		}
		for _, other := range d.Subnets[:i] {
			switch {
			case other.ID == subnet.ID:
				return fmt.Errorf("%s is there twice", subnet.ID)
			case other.CIDR.Overlaps(subnet.CIDR):
				return fmt.Errorf("CIDR of %s: %s overlaps %s of %s", subnet.ID, subnet.CIDR, other.CIDR, other.ID)
			}
		}
	}
	return nil
}

func within(inner, outer netip.Prefix) bool {
	return inner.Bits() >= outer.Bits() && outer.Contains(inner.Addr())
}

// validateRange checks a range as EC2 does, but for the size of VPCs, whose largest is /16 there.
func validateRange(what string, cidr netip.Prefix) error {
	switch {
	case !cidr.IsValid() || !cidr.Addr().Is4() || cidr.Masked() != cidr:
		return fmt.Errorf("%s %s is not a range of IPv4 addresses: write one like 172.31.0.0/20", what, cidr)
	case cidr.Bits() > 28:
		return fmt.Errorf("%s %s is too small for machines: choose a /28 or larger", what, cidr)
	case !cidr.Addr().IsGlobalUnicast():
		return fmt.Errorf("%s %s is not a range of addresses of machines: choose a private one", what, cidr)
	}
	return nil
}

// Describe writes the description of a VPC below the directory of all VPCs.
func Describe(root string, description Description) error {
	description.Version = descriptionVersion
	if err := description.validate(); err != nil {
		return fmt.Errorf("describing VPC: %w", err)
	}
	raw, err := json.MarshalIndent(description, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding description of %s: %w", description.ID, err)
	}
	dir := filepath.Join(root, description.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making VPC directory: %w", err)
	}
	return atomicfile.Write(filepath.Join(dir, descriptionFile), append(raw, '\n'), 0o600)
}

// Read reads the description of the VPC with an id; an error that is [fs.ErrNotExist] if there is none.
func Read(root, id string) (Description, error) {
	if err := ValidateID(id); err != nil {
		return Description{}, err
	}
	description, err := readDescription(filepath.Join(root, id))
	if err == nil && description.ID != id {
		err = fmt.Errorf("the description in %s is of %s", filepath.Join(root, id), description.ID)
	}
	return description, err
}

func readDescription(dir string) (Description, error) {
	path := filepath.Join(dir, descriptionFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return Description{}, fmt.Errorf("reading description of a VPC: %w", err)
	}
	var description Description
	if err := json.Unmarshal(raw, &description); err != nil {
		return Description{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if err := description.validate(); err != nil {
		return Description{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return description, nil
}

// List reads the descriptions of all VPCs, sorted by id.
func List(root string) ([]Description, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading directory of VPCs: %w", err)
	}
	var found []Description
	for _, entry := range entries {
		if !entry.IsDir() || ValidateID(entry.Name()) != nil {
			continue
		}
		description, err := Read(root, entry.Name())
		if errors.Is(err, fs.ErrNotExist) { // being made or removed
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, description)
	}
	return found, nil
}

// Open returns the VPC with an id, as its description says.
func Open(root, id string) (*Network, error) {
	description, err := Read(root, id)
	if err != nil {
		return nil, err
	}
	return fromDescription(filepath.Join(root, id), description)
}

func fromDescription(dir string, description Description) (*Network, error) {
	config := Config{Dir: dir, ID: description.ID, CIDR: description.CIDR, Subnets: make([]netip.Prefix, 0, len(description.Subnets))}
	for _, subnet := range description.Subnets {
		config.Subnets = append(config.Subnets, subnet.CIDR)
	}
	return New(config)
}

// OpenDefault returns the account's default VPC.
func OpenDefault(root string) (*Network, error) {
	all, err := List(root)
	if err != nil {
		return nil, err
	}
	for _, description := range all {
		if description.Default {
			return Open(root, description.ID)
		}
	}
	return nil, fmt.Errorf("there is no default VPC in %s", root)
}

// reload returns the network as its description is now. A network without a description does not change.
func (n *Network) reload() (*Network, error) {
	description, err := readDescription(n.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return nil, err
	}
	return fromDescription(n.dir, description)
}
