// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/certificates/policy"
)

// table answers lookups from an index over all machines of a source, be it an informer's or that of a list.
type table struct {
	name string
	// lookup finds the machines of a key; its result must not be changed.
	lookup func(index, key string) ([]policy.Machine, error)
	// current returns the time that answers are true for, or why there are none.
	current func() (at time.Time, why string)
}

const (
	byID   = "id"
	byNode = "node"
	byName = "name"
	// byElsewhere finds machines of other clusters by their IDs. The other indexes have none of these.
	byElsewhere = "elsewhere"
)

// indexers are those that a table needs of an informer, and the one of machines of other clusters.
func (k objects) indexers() cache.Indexers {
	all := indexers(k.read)
	all[byElsewhere] = func(o any) ([]string, error) {
		if id, _, ok := k.elsewhere(o); ok {
			return []string{id}, nil
		}
		return nil, nil
	}
	return all
}

// indexers are those that a table needs of an informer.
func indexers(read func(o any) (policy.Machine, bool)) cache.Indexers {
	index := func(keys func(policy.Machine) []string) cache.IndexFunc {
		return func(o any) ([]string, error) {
			m, ok := read(o)
			if !ok {
				return nil, nil
			}
			return slices.DeleteFunc(keys(m), func(k string) bool { return k == "" }), nil
		}
	}
	return cache.Indexers{
		byID:   index(func(m policy.Machine) []string { return []string{m.ID} }),
		byNode: index(func(m policy.Machine) []string { return []string{m.NodeName} }),
		byName: index(namesOf),
	}
}

// Machine finds a machine by its ID.
func (t *table) Machine(id string) policy.Fact[policy.Machine] { return t.one(byID, id, "ID") }

// MachineOfNode finds the machine that may register a node.
func (t *table) MachineOfNode(node string) policy.Fact[policy.Machine] {
	return t.one(byNode, node, "node name")
}

// one finds a machine. If two claim to be it, which may happen for a moment when an address is used again, the answer
// is Unknown until one of them is gone.
func (t *table) one(index, key, what string) policy.Fact[policy.Machine] {
	found, at, why := t.find(index, key)
	switch {
	case why != "":
		return policy.DontKnow[policy.Machine](t.name, why)
	case len(found) == 0:
		return policy.None[policy.Machine](t.name, at)
	case len(found) > 1:
		return policy.DontKnow[policy.Machine](t.name, fmt.Sprintf("machines %s and %s both have this %s", found[0].ID, found[1].ID, what))
	}
	return policy.Know(found[0], t.name, at)
}

// Owners finds all machines that have a DNS name or an address.
func (t *table) Owners(name string) policy.Fact[[]policy.Machine] {
	found, at, why := t.find(byName, name)
	if why != "" {
		return policy.DontKnow[[]policy.Machine](t.name, why)
	}
	return policy.Know(found, t.name, at)
}

func (t *table) find(index, key string) (found []policy.Machine, at time.Time, why string) {
	if at, why = t.current(); why != "" {
		return nil, at, why
	}
	found, err := t.lookup(index, key)
	if err != nil {
		return nil, at, err.Error()
	}
	return found, at, ""
}

// indexed is the lookup in an informer's index. Read makes a machine of an object in it; false means that it is none of
// this source's.
func indexed(indexer cache.Indexer, read func(o any) (policy.Machine, bool)) func(index, key string) ([]policy.Machine, error) {
	return func(index, key string) (found []policy.Machine, err error) {
		objects, err := indexer.ByIndex(index, key)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if m, ok := read(o); ok {
				found = append(found, m)
			}
		}
		slices.SortFunc(found, func(a, b policy.Machine) int { return strings.Compare(a.ID, b.ID) })
		return found, nil
	}
}

// namesOf returns every name and address of a machine, in the text in which requests ask for them.
func namesOf(m policy.Machine) []string {
	names := slices.Clone(m.Names)
	if m.NodeName != "" {
		names = append(names, m.NodeName)
	}
	for _, a := range m.Addresses {
		names = append(names, a.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// canonicalName is a DNS name in the one form in which policies compare names.
func canonicalName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// canonicalAddress is an address in the one form in which policies compare addresses; false means that it is none.
func canonicalAddress(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	return ip.Unmap(), err == nil && ip.Zone() == ""
}

// assigned sorts addresses of the kinds that Kubernetes knows into names and addresses. An unreadable name or address
// is nobody's.
func assigned(m *policy.Machine, kind corev1.NodeAddressType, address string) {
	switch kind {
	case corev1.NodeInternalIP, corev1.NodeExternalIP:
		if ip, ok := canonicalAddress(address); ok {
			m.Addresses = append(m.Addresses, ip)
		}
	case corev1.NodeInternalDNS, corev1.NodeExternalDNS, corev1.NodeHostName:
		// A host's name may be an address in text: kubelets ask for it as an address then.
		if ip, ok := canonicalAddress(address); ok {
			m.Addresses = append(m.Addresses, ip)
		} else if address != "" {
			m.Names = append(m.Names, canonicalName(address))
		}
	}
}

// ChangeOf is a change of machines, each as it was before or is after: the answers about their IDs, nodes, names and
// addresses may differ.
func ChangeOf(machines ...policy.Machine) Change {
	var c Change
	for _, m := range machines {
		if m.ID != "" {
			c.Machines = append(c.Machines, m.ID)
		}
		if m.NodeName != "" {
			c.Nodes = append(c.Nodes, m.NodeName)
		}
		c.Names = append(c.Names, namesOf(m)...)
	}
	return c.sorted()
}

// and is both changes as one, which is not sorted.
func (c Change) and(d Change) Change {
	return Change{
		All: c.All || d.All, Machines: append(c.Machines, d.Machines...), Nodes: append(c.Nodes, d.Nodes...), Names: append(c.Names, d.Names...),
	}
}

// sorted names each machine, node and name once.
func (c Change) sorted() Change {
	for _, list := range []*[]string{&c.Machines, &c.Nodes, &c.Names} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return c
}
