// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/certificates/policy"
)

// HostID is the ID of the machine that a person registered to be a node.
func HostID(node string) string { return "host-" + node }

// AddMachine writes a machine into a list that ReadList reads: in the place of the one of the same ID, or at the end.
// Comments in the list are lost. It reports whether the list had to be changed.
func AddMachine(data []byte, m policy.Machine) (out []byte, changed bool, err error) {
	all, err := ReadList(data)
	if err != nil {
		return nil, false, err
	}
	if err := unshared(all, m); err != nil {
		return nil, false, err
	}
	n := slices.IndexFunc(all, func(other policy.Machine) bool { return other.ID == m.ID })
	switch {
	case n < 0:
		all = append(all, m)
	case slices.Equal(all[n].Addresses, m.Addresses) && slices.Equal(all[n].Ranges, m.Ranges) && all[n].Created.Equal(m.Created) &&
		slices.Equal(all[n].Names, m.Names) && all[n].NodeName == m.NodeName && all[n].Group == m.Group:
		return data, false, nil
	default:
		all[n] = m
	}
	if out, err = writeList(all); err != nil {
		return nil, false, err
	}
	if _, err := ReadList(out); err != nil {
		return nil, false, err
	}
	return out, true, nil
}

// unshared refuses a machine that has the node's name or an address of another one.
func unshared(all []policy.Machine, m policy.Machine) error {
	for _, other := range all {
		if other.ID == m.ID {
			continue
		}
		fix := "take it from machine " + other.ID + " in the list first"
		if other.ID == HostID(other.NodeName) {
			fix = "`muster delete host " + other.NodeName + "` forgets that one"
		}
		if other.NodeName == m.NodeName {
			return fmt.Errorf("node %s is machine %s already: %s", m.NodeName, other.ID, fix)
		}
		for _, a := range m.Addresses {
			if slices.Contains(other.Addresses, a) {
				return fmt.Errorf("the address %s is that of %s: %s", a, other.NodeName, fix)
			}
		}
	}
	return nil
}

// RemoveMachine takes the machine with the ID out of a list, and reports whether it was there.
func RemoveMachine(data []byte, id string) (out []byte, found bool, err error) {
	all, err := ReadList(data)
	if err != nil {
		return nil, false, err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(m policy.Machine) bool { return m.ID == id })
	if len(left) == len(all) {
		return data, false, nil
	}
	out, err = writeList(left)
	return out, true, err
}

func writeList(all []policy.Machine) ([]byte, error) {
	l := machineList{Machines: make([]listed, 0, len(all))}
	for _, m := range all {
		entry := listed{ID: m.ID, NodeName: m.NodeName, Names: m.Names, Group: m.Group}
		for _, a := range m.Addresses {
			entry.Addresses = append(entry.Addresses, a.String())
		}
		for _, r := range m.Ranges {
			entry.AddressRanges = append(entry.AddressRanges, r.String())
		}
		if !m.Created.IsZero() {
			entry.Created = m.Created.Format(time.RFC3339)
		}
		l.Machines = append(l.Machines, entry)
	}
	out, err := yaml.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("writing the list of machines: %w", err)
	}
	return out, nil
}
