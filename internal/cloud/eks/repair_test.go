// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/repair"
)

// A repair that is paused is an issue of the group's health, and leaves it ACTIVE.
func TestPausedRepairIsAnIssue(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 200)
	group := &v1alpha1.NodeGroup{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterSlug("Blue_1"), Name: v1alpha1.NodeGroupSlug("Web_1")}, group); err != nil {
		t.Fatal(err)
	}
	for reason, paused := range map[string]bool{repair.TooManyUnhealthy: true, repair.ZonalShift: true, repair.Suspended: true, repair.Busy: false, repair.Rollout: false, "": false} {
		group.Status.ReadyReplicas = 1
		group.Status.Repair = &v1alpha1.NodeGroupRepairStatus{HeldReason: reason, HeldMessage: "3 of 6 nodes are unhealthy", Machines: []v1alpha1.UnhealthyMachine{{Machine: "i-0123456789abcdef0", Condition: "Ready"}}}
		if err := w.api.Status().Update(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		want := `"health":{"issues":[]}`
		if paused {
			want = `"health":{"issues":[{"code":"Unknown","message":"Node auto repair is paused: 3 of 6 nodes are unhealthy","resourceIds":["i-0123456789abcdef0"]}]}`
		}
		w.ask("GET", "/clusters/Blue_1/node-groups/Web_1", "", 200, want, `"status":"ACTIVE"`)
	}
}
