// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"muster.dev/muster/api/v1alpha1"
)

// A change has machines that joined by role asked for at once and once more, and a storm of changes does not ask more
// often.
func TestRecheck(t *testing.T) {
	for name, test := range map[string]struct {
		changes       int
		every, within time.Duration
		least, most   int
	}{
		"nothing changed": {0, 0, 10 * time.Second, 0, 0},
		"one change":      {1, 0, gather + time.Millisecond, 1, 1},
		"and once more":   {1, 0, 10 * time.Second, 2, 2},
		"two in one":      {2, gather / 2, 10 * time.Second, 2, 2},
		"a storm":         {10_000, time.Millisecond, 10 * time.Second, 9, 11},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				byToken := newTestMachine()
				byToken.Name = "i-0123456789abcdef1"
				foreign := newRoleMachine()
				foreign.Name, foreign.Spec.ClusterName = "i-0123456789abcdef2", "another"
				w := newWorld(t, newRoleMachine(), byToken, foreign)
				changed, nudges := make(chan struct{}, 1), make(chan event.TypedGenericEvent[string])
				r := &rechecker{management: w.management, cluster: "muster", changed: changed, memory: newMemory(), nudges: nudges, log: w.Log}
				ctx, cancel := context.WithTimeout(t.Context(), test.within)
				defer cancel()
				go func() {
					for range test.changes {
						select {
						case changed <- struct{}{}:
						default:
						}
						if !idle(ctx, test.every) {
							return
						}
					}
				}()
				rounds := 0
				go func() { _ = r.Start(ctx) }()
				for ctx.Err() == nil {
					select {
					case e := <-nudges:
						if rounds++; e.Object != id {
							t.Errorf("machine %s is asked for", e.Object)
						}
					case <-ctx.Done():
					}
				}
				synctest.Wait()
				if rounds < test.least || rounds > test.most {
					t.Errorf("%d rounds, want %d to %d", rounds, test.least, test.most)
				}
			})
		})
	}
}

// A Ready machine is asked for again before it is due.
func TestRecheckForgetsWhenToAsk(t *testing.T) {
	w := newWorld(t, newRoleMachine(), newTestNode("True"))
	r := w.machines()
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	w.now = w.now.Add(admittedAgain)
	mustReconcile(t, r, id)
	w.roles.refusal = &Refusal{Rule: "no-entry"}
	checks := w.roles.checks
	mustReconcile(t, r, id)
	if status, _ := identityOf(w.machine(t)); status != "True" || w.roles.checks != checks {
		t.Fatalf("asked before it is due: %s", status)
	}
	nudges := make(chan event.TypedGenericEvent[string], 1)
	(&rechecker{management: w.management, cluster: "muster", memory: r.memory, nudges: nudges, log: w.Log}).round(t.Context())
	if e := <-nudges; e.Object != id {
		t.Errorf("machine %s is asked for", e.Object)
	}
	mustReconcile(t, r, id)
	if status, _ := identityOf(w.machine(t)); status != "False" || w.machine(t).Status.Phase != v1alpha1.MachineReady {
		t.Errorf("%s", status)
	}
}

func TestGroupThatIsGoneIsTidiedUpAfter(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(1))
	r := w.groups()
	mustReconcile(t, r, "workers")
	if w.roles.tidied != 0 {
		t.Error("tidied while the group is there")
	}
	w.faults.fail("Tidy", 1)
	if _, err := reconcileOnce(t, r, "another"); !errors.Is(err, errTest) {
		t.Errorf("what failed is not tried again: %v", err)
	}
	mustReconcile(t, r, "another")
	if w.roles.tidied != 2 {
		t.Errorf("tidied %d times", w.roles.tidied)
	}
}

func TestGroupWaitsForTheFirstRole(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(2))
	w.roles.notYet = true
	r := w.groups()
	if result := mustReconcile(t, r, "workers"); result.RequeueAfter != notYetAgain || len(w.list(t)) != 0 {
		t.Errorf("again after %s, %d machines", result.RequeueAfter, len(w.list(t)))
	}
	w.roles.notYet = false
	mustReconcile(t, r, "workers")
	if len(w.list(t)) != 2 {
		t.Errorf("%d machines", len(w.list(t)))
	}
}
