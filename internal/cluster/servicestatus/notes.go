// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// openMetadata notes machines whose instance metadata answers pods, and so gives them the role of the node: a note for
// each node group.
func openMetadata(machines []v1alpha1.Machine, cluster string) []string {
	open := map[string]int32{}
	for i := range machines {
		m := &machines[i]
		if m.Spec.ClusterName == cluster && m.Spec.InstanceProfile != "" && m.Spec.Metadata().HTTPPutResponseHopLimit > 1 {
			open[m.Spec.NodeGroup]++
		}
	}
	var notes []string
	for _, group := range slices.Sorted(maps.Keys(open)) {
		notes = append(notes, fmt.Sprintf("pods on %s of node group %s can take the role of the node: httpPutResponseHopLimit is more than 1 there", readiness.Of(open[group], open[group], "machine", "machines"), group))
	}
	return notes
}

// drills notes the machines that are in trouble on purpose, a note for each.
func drills(machines []v1alpha1.Machine, cluster string) []string {
	var notes []string
	for i := range machines {
		m := &machines[i]
		if d := m.Status.Drill; m.Spec.ClusterName == cluster && d != nil && d.EndedAt == nil && m.Spec.Drill != nil {
			notes = append(notes, fmt.Sprintf("machine %s has the drill %s until %s: `muster drill %s end` ends it", m.Name, d.Kind, m.Spec.Drill.Ends.UTC().Format(time.RFC3339), m.Name))
		}
	}
	return notes
}

// until says how long a machine that was launched with another isolation keeps that.
func until(isolation v1alpha1.Isolation) string {
	if isolation == v1alpha1.IsolationUserNamespace {
		return "root there is root on this host until the machine boots next, or for good if isolation none was asked for"
	}
	return "a machine keeps its isolation until it is replaced"
}

// otherIsolation notes machines with another isolation than their node group makes machines with by now: a note for
// each node group.
func otherIsolation(groups []NodeGroup, machines []Machine) []string {
	var notes []string
	for _, g := range groups {
		var other, all int32
		for _, m := range machines {
			if m.NodeGroup != g.Name {
				continue
			}
			all++
			if m.Isolation != "" && m.Isolation != g.Isolation {
				other++
			}
		}
		if other > 0 {
			notes = append(notes, fmt.Sprintf("isolation %s of node group %s does not hold for %s, launched before it was set: %s "+
				"(`muster get machines -o wide` shows each, `muster delete machine NAME` replaces one)",
				g.Isolation, g.Name, readiness.Of(other, all, "machine", "machines"), until(g.Isolation)))
		}
	}
	return notes
}
