// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

func TestBoots(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 500_000_000, time.UTC)
	b := NewBoots(2)
	begin := func(id string, want bool) {
		t.Helper()
		if got := b.begin(id, now); got != want {
			t.Errorf("%s may boot: %v, want %v", id, got, want)
		}
	}
	begin("a", true)
	begin("b", true)
	begin("c", false)
	begin("a", true) // it is booting already, and takes no other place
	begin("c", false)
	b.heard("a", now.Add(-time.Minute)) // from before it was booted
	begin("c", false)
	b.heard("a", now.Truncate(time.Second))
	begin("c", true)
	begin("d", false)
	b.end("b")
	b.heard("b", now) // it is not booting
	begin("d", true)
	begin("e", false)
	now = now.Add(bootTime)
	begin("e", true) // c and d never came up
	begin("f", true)
	begin("g", false)
	var all *Boots
	for range 100 {
		if !all.begin("x", now) {
			t.Error("nothing limits it")
		}
	}
	all.heard("x", now)
	all.end("x")
}

// A local machine waits until the host can boot it, and says so; one whose node is Ready makes room.
func TestMachineWaitsToBoot(t *testing.T) {
	first, second := newTestMachine(), newTestMachine()
	second.Name, second.UID = "i-0fedcba9876543210", "second-uid"
	w := newWorld(t, first, second)
	w.Boots = NewBoots(1)
	r := w.machines()
	mustReconcile(t, r, first.Name)
	result := mustReconcile(t, r, second.Name)
	m := &v1alpha1.Machine{}
	w.get(t, w.management, m, second.Name)
	want(t, m, v1alpha1.MachinePending, readiness.ReasonQueued)
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if result.RequeueAfter != bootAgain || m.Status.ProviderID != "" || !strings.Contains(ready.Message, "as many machines are booting as this host can boot at once") {
		t.Errorf("looks again after %v, provider id %q, %q", result.RequeueAfter, m.Status.ProviderID, ready.Message)
	}
	if why := readiness.KeptFrom(m); why != "" {
		t.Errorf("it passes by itself, and it says %q", why)
	}
	node := newTestNode(corev1.ConditionTrue)
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(w.now)
	if err := w.cluster.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, r, first.Name)
	mustReconcile(t, r, second.Name)
	w.get(t, w.management, m, second.Name)
	if m.Status.ProviderID == "" {
		t.Errorf("the first is up, and the second is not booted: %+v", m.Status)
	}
}

// A boot that fails makes room, and so does a machine that goes.
func TestFailedBootMakesRoom(t *testing.T) {
	w := newWorld(t, newTestMachine())
	w.Boots = NewBoots(1)
	r := w.machines()
	w.faults.fail("Launch", 1)
	if _, err := reconcileOnce(t, r, id); err == nil {
		t.Fatal("no error")
	}
	if !w.Boots.begin("other", w.now) {
		t.Error("a failed boot is one that goes on")
	}
	w.Boots.end("other")
	mustReconcile(t, r, id)
	if w.Boots.begin("other", w.now) {
		t.Error("a machine that boots is not counted")
	}
	r.forget(id)
	if !w.Boots.begin("other", w.now) {
		t.Error("a machine that is gone boots for ever")
	}
}
