// SPDX-License-Identifier: Apache-2.0

package machine

// Usage is a subnet and who has addresses of it.
type Usage struct {
	Subnet
	// Machines are the ids of those that have an address of it, of every provider and cluster.
	Machines []string
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
		usage := Usage{Subnet: subnet}
		for _, record := range records {
			if record.VPC == vpc && subnet.CIDR.Contains(record.PrivateIP) {
				usage.Machines = append(usage.Machines, record.ID)
			}
		}
		found = append(found, usage)
	}
	return found, nil
}

// Room is how many machines the subnet can have: its addresses without those that every subnet reserves, and those that are taken.
func (s Subnet) Room() int {
	const last = 1 // nobody has it
	room := 1<<(32-s.CIDR.Bits()) - reserved - last
	for _, taken := range s.Taken {
		if s.CIDR.Contains(taken) {
			room--
		}
	}
	return room
}
