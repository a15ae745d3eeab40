// SPDX-License-Identifier: Apache-2.0

package service

import (
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/node/bootreport"
)

// muster up says what keeps a machine from becoming a node, while it waits.
func TestUpSaysWhatAMachineReports(t *testing.T) {
	t.Parallel()
	status := servicestatus.Cluster{
		NodeGroups: []servicestatus.NodeGroup{{Name: "workers", Desired: 1, Machines: 1}},
		Machines:   []servicestatus.Machine{{Name: clitest.SecondMachine, NodeGroup: "workers", Phase: v1alpha1.MachineJoining, Reason: bootreport.UserDataFailed, Message: clitest.SaysBadUserData + clitest.SecondMachine}},
	}
	text := func() string { return progressRows(servicestatus.Status{}, status, clitest.Noon)[1].text }
	if got := text(); !strings.Contains(got, clitest.SecondMachine+": "+clitest.SaysBadUserData) {
		t.Errorf("it says %q", got)
	}
	status.Machines[0].Reason, status.Machines[0].Message = "Joining", "the machine is on its way in"
	if got := text(); strings.Contains(got, "on its way in") {
		t.Errorf("of a machine that joins it says %q", got)
	}
}

// Who waits is told what keeps a machine from getting on, and not that it is on its way.
func TestProgressSaysWhatKeepsAMachine(t *testing.T) {
	group := []servicestatus.NodeGroup{{Name: "default", Desired: 1, Machines: 1}}
	for reason, kept := range map[string]bool{"Joining": false, "NodeNotReady": false, "Refused": true} {
		status := servicestatus.Cluster{NodeGroups: group, Machines: []servicestatus.Machine{
			{Name: "i-1", NodeGroup: "default", Phase: v1alpha1.MachineJoining, Step: v1alpha1.StepLaunched, Message: "refused by rule host", Reason: reason},
		}}
		rows := progressRows(servicestatus.Status{}, status, clitest.Noon)
		if text := rows[len(rows)-1].text; strings.Contains(text, "i-1: refused by rule host") != kept {
			t.Errorf("%s: %s", reason, text)
		}
	}
}
