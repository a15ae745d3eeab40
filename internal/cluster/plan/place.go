// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
)

// Subnet is what a plan needs to know of a subnet.
type Subnet struct {
	ID       string
	Zone     string
	Machines int // of the group, that count
	Free     int // machines that it has room for
}

// Place chooses the subnets of a number of new machines, one for each, so that the group is spread over availability zones: each is in a zone
// with the fewest machines of the group, in the subnet there with the fewest. A full subnet gets none; if all are full there are fewer
// than were asked for.
func Place(count int, subnets []Subnet) []string {
	open := slices.Clone(subnets)
	zones := map[string]int{}
	for _, subnet := range open {
		zones[subnet.Zone] += subnet.Machines
	}
	var chosen []string
	for range count {
		open = slices.DeleteFunc(open, func(s Subnet) bool { return s.Free <= 0 })
		if len(open) == 0 {
			break
		}
		slices.SortFunc(open, func(a, b Subnet) int {
			return cmp.Or(cmp.Compare(zones[a.Zone], zones[b.Zone]), cmp.Compare(a.Machines, b.Machines), cmp.Compare(a.ID, b.ID))
		})
		chosen = append(chosen, open[0].ID)
		zones[open[0].Zone]++
		open[0].Machines++
		open[0].Free--
	}
	return chosen
}
