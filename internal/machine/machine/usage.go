// SPDX-License-Identifier: Apache-2.0

package machine

import "net/netip"

// Usage is a subnet and who has addresses of it.
type Usage struct {
	Subnet
	// Machines are the ids of those that have an address of it, of every provider and cluster.
	Machines []string
	// PodMachines are the ids of those whose pods have a range of it.
	PodMachines []string
	// Used are the addresses and ranges that somebody has, of all subnets of the VPC.
	Used []netip.Prefix
}

// Usage lists the subnets of a VPC as they are now.
func (s *Store) Usage(vpc string) ([]Usage, error) {
	subnets, err := s.subnets()
	if err != nil {
		return nil, err
	}
	records, err := s.list()
	if err != nil {
		return nil, err
	}
	var found []Usage
	for _, subnet := range subnets {
		if subnet.VPC != vpc {
			continue
		}
		usage := Usage{Subnet: subnet, Used: usedOf(subnet, records)}
		for _, record := range records {
			if record.VPC == vpc && subnet.CIDR.Contains(record.PrivateIP) {
				usage.Machines = append(usage.Machines, record.ID)
			}
			if record.VPC == vpc && record.PodRange.IsValid() && subnet.CIDR.Overlaps(record.PodRange) {
				usage.PodMachines = append(usage.PodMachines, record.ID)
			}
		}
		found = append(found, usage)
	}
	return found, nil
}

// usedOf lists what is used of a subnet and of the others of its VPC: what is taken, and addresses and ranges of
// machines.
func usedOf(subnet Subnet, records []Record) []netip.Prefix {
	var used []netip.Prefix
	for _, address := range subnet.Taken {
		used = append(used, single(address))
	}
	for _, record := range records {
		if record.VPC != subnet.VPC {
			continue
		}
		used = append(used, single(record.PrivateIP))
		if record.PodRange.IsValid() {
			used = append(used, record.PodRange)
		}
	}
	return used
}

// Free is how many addresses of the subnet nobody has, without those that every subnet reserves.
func (u Usage) Free() int {
	p, err := newPool(u.CIDR, u.Used)
	if err != nil {
		return 0
	}
	return p.free()
}
