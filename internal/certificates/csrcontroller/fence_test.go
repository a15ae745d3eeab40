// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/platform/leaderlease"
)

// A replica that was stopped for a while goes on where it was: in the middle of a pass. It decides, tells and writes
// nothing before it has its lease again, and says so once.
func TestNothingIsWrittenOnALeaseThatRanOut(t *testing.T) {
	past, future := time.Now().Add(-time.Millisecond), time.Now().Add(ages)
	waits := func(w *world) {
		w.t.Helper()
		w.until("it waits for its lease", func() bool { return strings.Contains(w.log.String(), leaderlease.ErrLapsed.Error()) })
		if err := w.Ready(); !errors.Is(err, leaderlease.ErrLapsed) {
			w.t.Errorf("it says of itself: %v", err)
		}
		if n := w.gather()[namespace+"_leader"]; n != 0 {
			w.t.Errorf("%v lead", n)
		}
	}
	goesOn := func(w *world) {
		w.t.Helper()
		log, told := w.log.String(), w.events.all()
		if strings.Count(log, leaderlease.ErrLapsed.Error()) != 1 || strings.Contains(log, "trying again") || len(told) > 0 {
			w.t.Errorf("it told %q and logged\n%s", told, log)
		}
		w.Renewed(future)
		if err := w.Ready(); err != nil {
			w.t.Errorf("it is not ready: %v", err)
		}
	}
	t.Run("approval and denial", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Renewed(past)
		w.create(serving(t, "a", 11, address(11)), serving(t, "b", 11, "10.100.0.1"))
		waits(w)
		if a, b := w.state("a"), w.state("b"); a != "" || b != "" {
			t.Errorf("they are %q and %q", a, b)
		}
		goesOn(w)
		w.becomes("a", wasIssued)
		w.becomes("b", "Denied/address-reserved")
	})
	t.Run("failure", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Renewed(past)
		w.create(approved(serving(t, "a", 11, "10.100.0.1")))
		waits(w)
		if got := w.state("a"); got != "Approved/KubectlApprove" {
			t.Errorf("it is %q", got)
		}
		goesOn(w)
		w.becomes("a", "Approved/KubectlApprove Failed/SignerValidationFailure")
	})
	t.Run("certificate", func(t *testing.T) {
		w := newWorld(t, func(w *world) {
			w.duringSigning(sync.OnceFunc(func() { w.Renewed(past) }))
		})
		w.create(serving(t, "a", 11, address(11)))
		waits(w)
		if got := w.state("a"); got != "Approved/AutoApproved" {
			t.Errorf("it is %q", got)
		}
		goesOn(w)
		w.becomes("a", wasIssued)
	})
	t.Run("pruning", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Renewed(past)
		w.create(serving(t, "a", 12, address(12)), serving(t, "b", 12, address(12)), serving(t, "c", 12, address(12)))
		waits(w)
		if n := w.deletions(); n != 0 {
			t.Errorf("%d deletions", n)
		}
		goesOn(w)
		w.until("two are left", func() bool { return w.live("") == "b c" })
	})
}

// Events that wait for the budget wait for the lease, too. Events that wait for the lease do not hold up the end of the
// program.
func TestNothingIsToldOnALeaseThatRanOut(t *testing.T) {
	var later atomic.Int64
	start := time.Now()
	now := func() time.Time { return start.Add(time.Duration(later.Load())) }
	w := newWorld(t, func(w *world) { w.config.Now, w.facts.Now = now, now })
	const flood = eventsAtOnce + 5
	for n := range flood {
		w.create(stranger(t, fmt.Sprint("flood-", n)))
	}
	w.until("the others are held", func() bool { return w.budget.waiting() == flood-eventsAtOnce })
	w.until("all passes have ended", w.resting)
	w.Renewed(start.Add(time.Minute))
	later.Store(int64(time.Hour))
	w.create(stranger(t, "new"))
	w.until("it waits for its lease", func() bool { return strings.Contains(w.log.String(), leaderlease.ErrLapsed.Error()) })
	w.tick()
	if n := len(w.events.all()); n != eventsAtOnce || w.budget.waiting() != flood-eventsAtOnce {
		t.Errorf("%d events, and %d are held", n, w.budget.waiting())
	}
	ended := time.Now()
	w.stop()
	if took := time.Since(ended); took > w.Controller.config.Grace {
		t.Errorf("it ended after %s", took)
	}
	if err := w.Ready(); err == nil {
		t.Error("it has ended, and says that it is ready")
	}
}

// The end of the lease, as an election tells it, is before another replica may lead, and does not move while the lease
// cannot be renewed.
func TestWhatAnElectionTellsOfTheLease(t *testing.T) {
	client := fake.NewClientset()
	var cut atomic.Bool
	var until atomic.Pointer[time.Time]
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return cut.Load(), nil, errors.New("no connection")
	})
	e := election(client, "a")
	e.Renewed = func(at time.Time) { until.Store(&at) }
	first := run(t, e, func(ctx context.Context) { <-ctx.Done() })
	<-first.leads
	began := until.Load()
	if began == nil {
		t.Fatal("it leads, and was not told how long")
	}
	for !until.Load().After(*began) { // it was renewed
		pause()
	}
	since := time.Now()
	cut.Store(true)
	if err := <-first.ended; !errors.Is(err, ErrLost) {
		t.Errorf("ended with %v", err)
	}
	if until.Load().After(since.Add(e.Duration)) {
		t.Error("it was prolonged without having been renewed")
	}
}

// A lease that another replica has taken is not fought for: the first look at it ends the leader, and leaves it to its
// holder. It may be cut off or stopped for any time before that.
func TestALeaseThatAnotherHasTaken(t *testing.T) {
	for name, holder := range map[string]string{"another holds it": "b", "another held it and gave it up": ""} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			e := election(client, "a")
			e.Duration, e.Renew = 10*time.Minute, 9*time.Minute // nothing of what happens is due to them
			var isTaken atomic.Bool
			client.PrependReactor("update", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
				// As the API server does, and the fake one does not.
				o, ok := a.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
				if isTaken.Load() && ok && o.Spec.HolderIdentity != nil && *o.Spec.HolderIdentity == e.Identity {
					return true, nil, conflict()
				}
				return false, nil, nil
			})
			first := run(t, e, func(ctx context.Context) { <-ctx.Done() })
			<-first.leads
			leases := client.CoordinationV1().Leases(e.Namespace)
			taken, err := leases.Get(t.Context(), e.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			taken.Spec.HolderIdentity = &holder
			isTaken.Store(true)
			if _, err := leases.Update(t.Context(), taken, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-first.ended:
				if !errors.Is(err, ErrLost) {
					t.Errorf("ended with %v", err)
				}
			case <-time.After(patience):
				t.Fatal("it leads on")
			}
			if now, err := leases.Get(t.Context(), e.Name, metav1.GetOptions{}); err != nil || *now.Spec.HolderIdentity != holder {
				t.Errorf("it is held by %v, %v", now.Spec.HolderIdentity, err)
			}
		})
	}
}
