// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/runner"
)

func TestReady(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Cluster)
		want   bool
	}{
		"all there":         {func(*Cluster) {}, true},
		"no groups":         {func(s *Cluster) { s.NodeGroups = nil }, true},
		"nothing seen yet":  {func(s *Cluster) { s.Settled = false }, false},
		"cluster not ready": {func(s *Cluster) { s.Ready = false }, false},
		"a component waits": {func(s *Cluster) {
			s.Components = []runner.Status{{State: runner.Ready}, {State: runner.Waiting}}
		}, false},
		"components serve":  {func(s *Cluster) { s.Components = []runner.Status{{State: runner.Ready}} }, true},
		"a node not ready":  {func(s *Cluster) { s.NodeGroups[1].Ready = 1 }, false},
		"a machine missing": {func(s *Cluster) { s.NodeGroups[1].Machines, s.NodeGroups[1].Ready = 1, 1 }, false},
		"one too many":      {func(s *Cluster) { s.NodeGroups[0].Machines = 1 }, false},
		"a Ready machine is refused": {func(s *Cluster) {
			s.Machines = []Machine{{Phase: v1alpha1.MachineReady}, {Phase: v1alpha1.MachineReady, Message: "its role is unmapped"}}
		}, false},
		"one that goes away tells why": {func(s *Cluster) {
			s.Machines = []Machine{{Phase: v1alpha1.MachineTerminating, Message: "being deleted"}}
		}, true},
		"one is stopped": {func(s *Cluster) {
			s.NodeGroups[1].Name, s.NodeGroups[1].Ready = "workers", 1
			s.Machines = []Machine{{NodeGroup: "workers", Phase: v1alpha1.MachineReady}, {NodeGroup: "workers", Phase: v1alpha1.MachineStopped, Message: "it is stopped"}}
		}, true},
		"one is stopped of another group": {func(s *Cluster) {
			s.NodeGroups[1].Name, s.NodeGroups[1].Ready = "workers", 1
			s.Machines = []Machine{{NodeGroup: "others", Phase: v1alpha1.MachineStopped}}
		}, false},
		"one too many is ready": {func(s *Cluster) { s.NodeGroups[0].Machines, s.NodeGroups[0].Ready = 1, 1 }, false},
	} {
		s := Cluster{Settled: true, Ready: true, NodeGroups: []NodeGroup{{Desired: 0}, {Desired: 2, Machines: 2, Ready: 2}}}
		test.change(&s)
		if got := s.AsAsked(); got != test.want {
			t.Errorf("%s: AsAsked() is %v", name, got)
		}
		all := Status{Clusters: []Cluster{{Settled: true, Ready: true}, s}}
		if got := all.Ready(); got != test.want {
			t.Errorf("%s, beside a cluster that is as asked: Ready() is %v", name, got)
		}
	}
	if !(Status{}).Ready() {
		t.Error("an account without clusters is not ready")
	}
	if (Status{Looking: true}).Ready() {
		t.Error("a service that has not looked for clusters yet is ready")
	}
}
