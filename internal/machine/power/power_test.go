// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/fake"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/machine/power"
)

// world is a machine and its provider, at a moment.
type world struct {
	*testing.T
	m        *v1alpha1.Machine
	provider *fake.Provider
	now      time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	subnets, _ := machinetest.Subnets() // which never fails
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	w := &world{t, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: machinetest.First}}, fake.New(fake.Config{Subnet: subnets[0], Region: machinetest.Region()}), now}
	w.launch()
	return w
}

func (w *world) launch() {
	w.Helper()
	if _, err := w.provider.Launch(w.Context(), machine.LaunchRequest{ID: w.m.Name}); err != nil {
		w.Fatal(err)
	}
	power.Up(w.m, w.now)
}

// down takes one step, ten seconds after the one before.
func (w *world) down() power.Step {
	w.Helper()
	w.now = w.now.Add(10 * time.Second)
	instance, err := w.provider.Get(w.Context(), w.m.Name)
	if err != nil && !errors.Is(err, machine.ErrNotFound) {
		w.Fatal(err)
	}
	step, err := power.Down(w.Context(), w.provider, w.m, instance, w.now)
	if err != nil {
		w.Fatal(err)
	}
	return step
}

// want checks what is done, and what the machine then says; stops is how often the provider was asked to stop it by now.
func (w *world) want(got, step power.Step, reason string, stops int) {
	w.Helper()
	if got != step {
		w.Errorf("the step is %+v, want %+v", got, step)
	}
	if was := power.Was(w.m); was != reason {
		w.Errorf("the machine is %q, want %q", was, reason)
	}
	if n := w.provider.Calls(fake.Stop); n != stops {
		w.Errorf("the provider was asked %d times to stop it, want %d", n, stops)
	}
}

func (w *world) state() machine.State {
	w.Helper()
	instance, err := w.provider.Get(w.Context(), w.m.Name)
	if err != nil {
		w.Fatal(err)
	}
	return instance.State
}

func TestStopAndStart(t *testing.T) {
	w := newWorld(t)
	w.want(w.down(), power.Step{}, "", 0)
	if len(w.m.Status.Conditions) > 0 {
		t.Errorf("a machine that was never stopped has %v", w.m.Status.Conditions)
	}
	w.m.Spec.PowerState = v1alpha1.PowerStopped
	w.want(w.down(), power.Step{Off: true, Again: true}, v1alpha1.ReasonStopping, 0)
	began := w.now
	w.want(w.down(), power.Step{Off: true, Ended: true}, v1alpha1.ReasonStopped, 1)
	w.want(w.down(), power.Step{Off: true}, v1alpha1.ReasonStopped, 1)
	if at := meta.FindStatusCondition(w.m.Status.Conditions, v1alpha1.ConditionRunning).LastTransitionTime; !at.Time.Equal(began) || w.state() != machine.Stopped || !power.IsStopped(w.m) {
		t.Errorf("it is %s since %s, and was to stop at %s", w.state(), at, began)
	}
	w.m.Spec.PowerState = v1alpha1.PowerRunning
	w.want(w.down(), power.Step{}, v1alpha1.ReasonStopped, 1)
	w.launch()
	w.want(w.down(), power.Step{}, "", 1)
	if !power.Starts(w.m) {
		t.Error("it is settled at once")
	}
	power.Settle(w.m, w.now)
	if at := w.m.Status.StartedAt; at == nil || power.Starts(w.m) || power.IsStopped(w.m) || !meta.IsStatusConditionTrue(w.m.Status.Conditions, v1alpha1.ConditionRunning) {
		t.Errorf("it was started at %v: %+v", at, w.m.Status.Conditions)
	}
}

// A machine that is to run again before it was shut down has not been started.
func TestStopIsTakenBack(t *testing.T) {
	w := newWorld(t)
	w.m.Spec.PowerState = v1alpha1.PowerStopped
	w.want(w.down(), power.Step{Off: true, Again: true}, v1alpha1.ReasonStopping, 0)
	w.m.Spec.PowerState = v1alpha1.PowerRunning
	w.want(w.down(), power.Step{}, "", 0)
	power.Up(w.m, w.now)
	if w.m.Status.StartedAt != nil || power.Starts(w.m) {
		t.Errorf("it was started at %v: %+v", w.m.Status.StartedAt, w.m.Status.Conditions)
	}
}

// A reboot is made once for each number, and is not a start.
func TestReboot(t *testing.T) {
	w := newWorld(t)
	w.m.Spec.Reboots = 2
	w.want(w.down(), power.Step{Off: true, Again: true, Ended: true}, v1alpha1.ReasonRebooting, 1)
	if w.state() != machine.Stopped || w.m.Status.Reboots != 2 {
		t.Errorf("it is %s after reboot %d", w.state(), w.m.Status.Reboots)
	}
	w.want(w.down(), power.Step{}, v1alpha1.ReasonRebooting, 1)
	w.launch()
	w.want(w.down(), power.Step{}, "", 1)
	if w.m.Status.StartedAt != nil {
		t.Error("a reboot counts as a start")
	}
}

// Work that was done before a crash, and is not in the status, is done once more; it changes nothing.
func TestKilledInBetween(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.MachineSpec){
		"stop":   func(s *v1alpha1.MachineSpec) { s.PowerState = v1alpha1.PowerStopped },
		"reboot": func(s *v1alpha1.MachineSpec) { s.Reboots = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(&w.m.Spec)
			for steps := 0; ; steps++ {
				before := w.m.Status.DeepCopy()
				first, status := w.down(), w.m.Status.DeepCopy()
				w.m.Status = *before // as if nothing had been written
				if again := w.down(); !again.Off || w.m.Status.Reboots != status.Reboots || power.Was(w.m) == "" {
					t.Errorf("after %+v it does %+v, and is %q", first, again, power.Was(w.m))
				}
				if power.Was(w.m) != v1alpha1.ReasonStopping {
					break
				}
				if steps > 3 {
					t.Fatal("it does not end")
				}
			}
			if w.state() != machine.Stopped {
				t.Errorf("it is %s", w.state())
			}
		})
	}
}

// A machine that died by itself, and is stopped then, is shut down all the same, for what it left.
func TestStopsWhatDied(t *testing.T) {
	w := newWorld(t)
	w.provider.Die(w.m.Name)
	w.m.Spec.PowerState = v1alpha1.PowerStopped
	w.want(w.down(), power.Step{Off: true, Ended: true}, v1alpha1.ReasonStopped, 1)
	if _, err := w.provider.Launch(t.Context(), machine.LaunchRequest{ID: w.m.Name}); err != nil { // by a stranger
		t.Fatal(err)
	}
	w.want(w.down(), power.Step{Off: true, Again: true}, v1alpha1.ReasonStopping, 1)
	w.want(w.down(), power.Step{Off: true, Ended: true}, v1alpha1.ReasonStopped, 2)
}

func TestNeverLaunched(t *testing.T) {
	w := newWorld(t)
	if err := w.provider.Terminate(t.Context(), w.m.Name); err != nil {
		t.Fatal(err)
	}
	w.m.Spec.Reboots = 1
	w.want(w.down(), power.Step{}, "", 0)
	w.m.Spec.PowerState = v1alpha1.PowerStopped
	w.want(w.down(), power.Step{Off: true}, v1alpha1.ReasonStopped, 0)
}

func TestStopFails(t *testing.T) {
	w := newWorld(t)
	failure := errors.New("not now")
	w.provider.Fail(fake.Stop, failure)
	w.m.Spec.Reboots = 1
	instance := machine.Instance{ID: w.m.Name, State: machine.Running}
	if step, err := power.Down(t.Context(), w.provider, w.m, instance, w.now); !errors.Is(err, failure) || !step.Off || w.m.Status.Reboots != 0 {
		t.Errorf("%+v, %v, reboot %d", step, err, w.m.Status.Reboots)
	}
}
