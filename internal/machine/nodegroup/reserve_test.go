// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

// A machine that was stopped for the reserve of the host's disk says so, also while its node does not know yet, is
// tried again, and boots when it may.
func TestStoppedForReserve(t *testing.T) {
	w := newWorld(t, newTestMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	w.addNode(t, corev1.ConditionTrue)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady")
	w.provider.instances[0].State = machine.Stopped
	w.provider.launchError = fmt.Errorf("launching machine: %w: more", machine.ErrDiskReserve)
	w.events.list = nil
	for range 3 {
		result, err := reconcileOnce(t, r, id)
		if err != nil || result.RequeueAfter != reserveAgain {
			t.Errorf("it is tried again after %v, %v", result.RequeueAfter, err)
		}
		want(t, w.machine(t), v1alpha1.MachineNotReady, reasonReserve)
	}
	if len(w.events.list) != 1 || !strings.Contains(w.events.list[0], reasonReserve) {
		t.Errorf("events: %q", w.events.list)
	}
	w.provider.launchError = nil
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady")
}
