// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/drill"
	"muster.dev/muster/internal/machine/power"
)

// drilled is a provider whose machines can be in trouble.
type drilled struct {
	*provider
	effects *[]drill.Effect
}

func (p drilled) Drill(_ context.Context, _ string, effect drill.Effect) error {
	*p.effects = append(*p.effects, effect)
	return p.faults.call("Drill")
}

func drilledWorld(t *testing.T) (*world, *machines, drilled) {
	t.Helper()
	w, r := joined(t)
	p := drilled{w.provider, &[]drill.Effect{}}
	w.Providers[v1alpha1.ProviderLocal] = p
	return w, r, p
}

func (w *world) drills(t *testing.T, kind v1alpha1.DrillKind, lasts time.Duration) {
	t.Helper()
	w.setPower(t, func(s *v1alpha1.MachineSpec) {
		s.Drill = &v1alpha1.MachineDrill{Kind: kind, Began: metav1.NewMicroTime(w.now), Ends: metav1.NewTime(w.now.Add(lasts))}
	})
}

// A drill begins, is made sure of, and ends by itself, whichever call of it fails once.
func TestDrill(t *testing.T) {
	for _, fails := range []string{"", "Drill", "management Patch", "Get"} {
		w, r, p := drilledWorld(t)
		w.drills(t, v1alpha1.DrillKubelet, time.Minute)
		if fails != "" {
			w.faults.fail(fails, 1)
		}
		for range 5 {
			_, _ = reconcileOnce(t, r, id)
		}
		m := w.machine(t)
		if !m.Status.Drill.Goes(v1alpha1.DrillKubelet) || len(*p.effects) == 0 || (*p.effects)[len(*p.effects)-1].Held != "kubelet" {
			t.Errorf("%s: status %+v, effects %+v", fails, m.Status.Drill, *p.effects)
		}
		w.now = w.now.Add(time.Minute)
		for range 3 {
			mustReconcile(t, r, id)
		}
		if m := w.machine(t); m.Status.Drill.EndedAt == nil || (*p.effects)[len(*p.effects)-1].Held != "" {
			t.Errorf("%s: status %+v, effects %+v", fails, m.Status.Drill, *p.effects)
		}
		if events := strings.Join(w.events.list, "\n"); strings.Count(events, "DrillBegan") != 1 || strings.Count(events, "DrillEnded") != 1 {
			t.Errorf("%s: events:\n%s", fails, events)
		}
	}
}

func TestDrillsStopAndReboot(t *testing.T) {
	w, r, _ := drilledWorld(t)
	w.drills(t, v1alpha1.DrillStop, time.Minute)
	for range 5 {
		mustReconcile(t, r, id)
	}
	want(t, w.machine(t), v1alpha1.MachineStopped, v1alpha1.ReasonStopped)
	w.now = w.now.Add(time.Minute)
	for range 3 {
		mustReconcile(t, r, id)
	}
	want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady") // as far as the cluster knows yet
	stops := w.faults.calls["Stop"]
	w.drills(t, v1alpha1.DrillReboot, 0)
	for range 5 {
		mustReconcile(t, r, id)
	}
	if m := w.machine(t); w.faults.calls["Stop"] != stops+1 || m.Status.Drill.EndedAt == nil || m.Status.Phase != v1alpha1.MachineReady {
		t.Errorf("%d stops, phase %s, drill %+v", w.faults.calls["Stop"]-stops, m.Status.Phase, m.Status.Drill)
	}
	if events := strings.Join(w.events.list, "\n"); strings.Contains(events, "Relaunched") {
		t.Errorf("it died:\n%s", events)
	}
}

// A machine that is interrupted is announced first, and goes without waiting for its pods; one whose drill is ended early
// stays.
func TestDrillInterrupts(t *testing.T) {
	for _, ended := range []bool{true, false} {
		w, r, p := drilledWorld(t)
		w.drills(t, v1alpha1.DrillSpotInterruption, 2*time.Minute)
		for range 2 {
			mustReconcile(t, r, id)
		}
		if leaves := (*p.effects)[0].Leaves; leaves["spot/instance-action"] == "" {
			t.Errorf("it is not announced: %v", leaves)
		}
		if ended {
			w.setPower(t, func(s *v1alpha1.MachineSpec) { s.Drill = nil })
		}
		w.now = w.now.Add(2 * time.Minute)
		mustReconcile(t, r, id)
		m := &v1alpha1.Machine{}
		there := w.get(t, w.management, m, id)
		if stays := there && m.DeletionTimestamp.IsZero(); stays != ended {
			t.Errorf("ended early %v: the machine stays %v", ended, stays)
		}
		if !ended && !strings.Contains(m.Annotations[v1alpha1.AnnotationTerminationCause], "Spot interruption") {
			t.Errorf("its annotations are %v", m.Annotations)
		}
	}
}

// A machine whose provider has no drills says so.
func TestDrillThatCannotBe(t *testing.T) {
	w, r := joined(t)
	w.setReady(t, corev1.ConditionUnknown)
	mustReconcile(t, r, id)
	w.drills(t, v1alpha1.DrillKubelet, time.Minute)
	_, err := reconcileOnce(t, r, id)
	if err == nil || !strings.Contains(err.Error(), "run pods") && errors.Unwrap(err) == nil || w.machine(t).Status.Drill != nil {
		t.Errorf("%v, %+v", err, w.machine(t).Status.Drill)
	}
}

// A drill that cannot be carried out, such as a full disk that is the host's, says so, and the machine does all else: it is stopped
// when its spec says that, and its drill ends as soon as that can be.
func TestDrillsThatFailKeepNothingElse(t *testing.T) {
	w, r, _ := drilledWorld(t)
	w.drills(t, v1alpha1.DrillDiskFull, time.Minute)
	fail := func() {
		w.faults.fail("Drill", 1)
		_, _ = reconcileOnce(t, r, id)
	}
	for range 3 {
		fail()
	}
	if events := strings.Join(w.events.list, "\n"); !strings.Contains(events, "Warning DrillFailed: drill disk-full: made to fail") {
		t.Errorf("events:\n%s", events)
	}
	w.setPower(t, stop)
	for range 3 {
		fail()
	}
	want(t, w.machine(t), v1alpha1.MachineStopped, v1alpha1.ReasonStopped)
	w.now = w.now.Add(time.Minute)
	fail()
	w.setPower(t, start)
	fail()
	if m := w.machine(t); m.Status.Drill.EndedAt != nil || power.Was(m) != "" {
		t.Errorf("it has ended at %v, and is %q", m.Status.Drill.EndedAt, power.Was(m))
	}
	mustReconcile(t, r, id)
	if m := w.machine(t); m.Status.Drill.EndedAt == nil {
		t.Error("it does not end")
	}
}
