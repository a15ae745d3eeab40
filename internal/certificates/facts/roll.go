// SPDX-License-Identifier: Apache-2.0

package facts

import "muster.dev/muster/internal/certificates/policy"

// roll is a list of machines to look up in. It is made whole and never changed. An informer's index would be general,
// with sets behind every key, and ten times its size.
type roll struct {
	machines []policy.Machine
	// Places in machines. In a list that ReadList read each ID and each name is there once.
	ids, names map[string]int32
	ranges     ranges
}

func newRoll(machines []policy.Machine) *roll {
	r := &roll{machines: machines, ids: make(map[string]int32, len(machines)), names: make(map[string]int32, 2*len(machines))}
	for i, m := range machines {
		place := int32(i) // there are at most maxMachines
		r.ids[m.ID] = place
		for _, n := range namesOf(m) {
			r.names[n] = place
		}
		r.ranges.add(place, m.Ranges)
	}
	return r
}

// find is the lookup of a table.
func (r *roll) find(index, key string) ([]policy.Machine, error) {
	places := r.names
	if index == byID {
		places = r.ids
	}
	place, ok := places[key]
	if !ok && index == byName {
		var found []policy.Machine
		for _, place := range r.ranges.with(key) {
			found = append(found, r.machines[place])
		}
		return found, nil
	}
	if !ok || key == "" || index == byNode && r.machines[place].NodeName != key {
		return nil, nil
	}
	return r.machines[place : place+1 : place+1], nil
}
