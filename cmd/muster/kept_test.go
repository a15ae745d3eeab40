// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster"
)

// Who waits is told what keeps a machine from getting on, and not that it is on its way.
func TestProgressSaysWhatKeepsAMachine(t *testing.T) {
	group := []cluster.NodeGroupStatus{{Name: "default", Desired: 1, Machines: 1}}
	for reason, kept := range map[string]bool{"Joining": false, "NodeNotReady": false, "Refused": true} {
		status := cluster.Status{NodeGroups: group, Machines: []cluster.MachineStatus{
			{Name: "i-1", NodeGroup: "default", Phase: v1alpha1.MachineJoining, Step: v1alpha1.StepLaunched, Message: "refused by rule host", Reason: reason},
		}}
		rows := progressRows(status)
		if text := rows[len(rows)-1].text; strings.Contains(text, "i-1: refused by rule host") != kept {
			t.Errorf("%s: %s", reason, text)
		}
	}
}

func TestKeptFrom(t *testing.T) {
	for _, test := range []struct {
		reason, status, want string
	}{
		{"NodeReady", "True", ""}, {"Joining", "False", ""}, {"Terminating", "False", ""}, {"Late", "False", ""},
		{"Refused", "False", "; because"}, {"Draining", "False", "; because"},
	} {
		m := &v1alpha1.Machine{Status: v1alpha1.MachineStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionStatus(test.status), Reason: test.reason, Message: "because"},
		}}}
		if got := keptFrom(m); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
	if got := keptFrom(&v1alpha1.Machine{}); got != "" {
		t.Errorf("of a machine that nothing is known of: %q", got)
	}
}
