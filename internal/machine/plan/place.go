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
}

// Place chooses the subnets of a number of new machines, one for each, so that the group is spread over availability
// zones: each is in a zone with the fewest machines of the group, in the subnet there with the fewest. take has one
// more machine in a subnet, and is false if that is full: it gets no more. If all are full there are fewer than were
// asked for.
func Place(count int, subnets []Subnet, take func(id string) bool) []string {
	open := slices.Clone(subnets)
	zones := map[string]int{}
	for _, subnet := range open {
		zones[subnet.Zone] += subnet.Machines
	}
	var chosen []string
	for len(chosen) < count && len(open) > 0 {
		slices.SortFunc(open, func(a, b Subnet) int {
			return cmp.Or(cmp.Compare(zones[a.Zone], zones[b.Zone]), cmp.Compare(a.Machines, b.Machines), cmp.Compare(a.ID, b.ID))
		})
		if !take(open[0].ID) {
			open = open[1:]
			continue
		}
		chosen = append(chosen, open[0].ID)
		zones[open[0].Zone]++
		open[0].Machines++
	}
	return chosen
}
