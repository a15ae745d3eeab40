// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/plane/readiness"
)

// Overview is the first page: the clusters, their machines by zone, all that is wrong, and what happened lately.
type Overview struct {
	At time.Time `json:"at"`
	// Filter is the text that machines were chosen by; empty for all.
	Filter string `json:"filter,omitempty"`
	// Counts are the machines of each state, of all clusters, whatever the filter.
	Counts   map[State]int      `json:"counts"`
	Wrong    []diagnosis.Report `json:"wrong"`
	Clusters []ClusterCard      `json:"clusters"`
	// Others are machines of no cluster.
	Others []Machine          `json:"others,omitempty"`
	Lately []Happening        `json:"lately"`
	Unseen []diagnosis.Unseen `json:"unseen,omitempty"`
}

// ClusterCard is one cluster on the overview.
type ClusterCard struct {
	Name     string  `json:"name"`
	Version  string  `json:"version,omitempty"`
	Status   string  `json:"status"` // as muster get clusters says it
	Ready    bool    `json:"ready"`
	Why      string  `json:"why,omitempty"`
	Endpoint string  `json:"endpoint,omitempty"`
	Groups   []Group `json:"groups,omitempty"`
	Zones    []Zone  `json:"zones,omitempty"`
	// Machines that the cluster has, and Matching of them that the filter chose.
	Machines int `json:"machines"`
	Matching int `json:"matching"`
}

// Group is one node group of a cluster.
type Group struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Version  string `json:"version,omitempty"`
	Desired  int32  `json:"desired"`
	Min      int32  `json:"min"`
	Max      int32  `json:"max"`
	Machines int32  `json:"machines"`
	Ready    int32  `json:"ready"`
	Status   string `json:"status"`
	Why      string `json:"why,omitempty"`
}

// Zone has the machines of a cluster in an availability zone, sorted by group and name.
type Zone struct {
	Name     string    `json:"name"`
	Machines []Machine `json:"machines"`
}

// Machine is one machine in a list.
type Machine struct {
	ID      string `json:"id"`
	Node    string `json:"node,omitempty"`
	Address string `json:"address,omitempty"`
	Group   string `json:"group,omitempty"`
	Zone    string `json:"zone,omitempty"`
	State   State  `json:"state"`
	Phase   string `json:"phase,omitempty"`
	// Cause is the first cause of its trouble, if that is known.
	Cause string `json:"cause,omitempty"`
}

// NewOverview makes the overview of the machines that have the filter's text in a name, address, group, zone or state.
func NewOverview(f Facts, filter string) Overview {
	o := Overview{
		At: f.At, Filter: filter, Counts: map[State]int{}, Wrong: f.Wrong.Reports, Unseen: f.Wrong.Unseen,
		Clusters: []ClusterCard{}, Lately: NewHappenings(f, mostLately),
	}
	if o.Wrong == nil {
		o.Wrong = []diagnosis.Report{}
	}
	wanted := strings.ToLower(strings.TrimSpace(filter))
	troubles, zones := f.troubles(), f.zones()
	all, chosen := map[string]int{}, map[string][]Machine{}
	for i := range f.Machines {
		m := &f.Machines[i]
		one := listed(m, troubles[m.Name], zones)
		o.Counts[one.State]++
		all[m.Spec.ClusterName]++
		if one.has(wanted) {
			chosen[m.Spec.ClusterName] = append(chosen[m.Spec.ClusterName], one)
		}
	}
	for i := range f.Clusters {
		c := card(&f.Clusters[i])
		c.Groups = f.groups(f.Clusters[i].Namespace)
		c.Machines, c.Matching = all[c.Name], len(chosen[c.Name])
		c.Zones = byZone(chosen[c.Name])
		o.Clusters = append(o.Clusters, c)
		delete(chosen, c.Name)
	}
	slices.SortFunc(o.Clusters, func(a, b ClusterCard) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		o.Others = append(o.Others, chosen[name]...)
	}
	slices.SortFunc(o.Others, order)
	return o
}

// listed is a machine as lists show it.
func listed(m *v1alpha1.Machine, trouble *diagnosis.Report, zones map[string]string) Machine {
	one := Machine{
		ID: m.Name, Node: m.Status.NodeName, Address: address(m), Group: m.Spec.NodeGroup, Zone: zones[string(m.Spec.SubnetID)],
		State: stateOf(m, trouble != nil), Phase: cmp.Or(m.Lifecycle(), string(m.Status.Phase), string(v1alpha1.MachinePending)),
	}
	if !m.DeletionTimestamp.IsZero() && m.Lifecycle() == "" {
		one.Phase = string(v1alpha1.MachineTerminating)
	}
	if trouble != nil && len(trouble.Causes) > 0 {
		one.Cause = string(trouble.Causes[0].Cause)
	}
	return one
}

// has reports whether a machine has a text, which is in small letters.
func (m Machine) has(wanted string) bool {
	return wanted == "" || slices.ContainsFunc([]string{m.ID, m.Node, m.Address, m.Group, m.Zone, string(m.State), m.Phase, m.Cause},
		func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

func card(c *v1alpha1.Cluster) ClusterCard {
	word := readiness.Word(c, c.Status.Conditions)
	return ClusterCard{
		Name: c.Spec.Name, Version: cmp.Or(c.Status.Version, c.Spec.Version), Status: word, Ready: word == readiness.ReasonReady,
		Why: readiness.Message(c.Status.Conditions), Endpoint: c.Status.Endpoint,
	}
}

// groups are the node groups in the namespace of a cluster.
func (f *Facts) groups(namespace string) []Group {
	var groups []Group
	for i := range f.Groups {
		g := &f.Groups[i]
		if g.Namespace != namespace {
			continue
		}
		groups = append(groups, Group{
			Name: g.Spec.Name, Provider: string(g.Spec.Provider), Version: cmp.Or(g.Status.Version, g.Spec.Version),
			Desired: g.Spec.ScalingConfig.DesiredSize, Min: g.Spec.ScalingConfig.MinSize, Max: g.Spec.ScalingConfig.MaxSize,
			Machines: g.Status.Replicas, Ready: g.Status.ReadyReplicas,
			Status: readiness.Word(g, g.Status.Conditions), Why: readiness.Message(g.Status.Conditions),
		})
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

// byZone puts machines under their zones, both in their order.
func byZone(machines []Machine) []Zone {
	found := map[string][]Machine{}
	for _, m := range machines {
		found[m.Zone] = append(found[m.Zone], m)
	}
	zones := make([]Zone, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		slices.SortFunc(found[name], order)
		zones = append(zones, Zone{Name: name, Machines: found[name]})
	}
	return zones
}

// order sorts by group, then by the instance id.
func order(a, b Machine) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.ID, b.ID))
}
