// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A replica that was stopped for a while goes on where it was: in the middle of a pass. It writes nothing before it has its lease again.
func TestNothingIsWrittenOnALeaseThatRanOut(t *testing.T) {
	past, future := time.Now().Add(-time.Millisecond), time.Now().Add(ages)
	refused := func(w *world) func() bool {
		return func() bool { return w.tried() > 3 }
	}
	t.Run("approval and denial", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.config.Retry = Backoff{time.Millisecond, 5 * time.Millisecond} })
		w.Renewed(past)
		w.create(serving(t, "a", 11, address(11)), serving(t, "b", 11, "10.100.0.1"))
		w.until("both were tried", refused(w))
		if a, b := w.state("a"), w.state("b"); a != "" || b != "" {
			t.Errorf("they are %q and %q", a, b)
		}
		w.Renewed(future)
		w.becomes("a", issued)
		w.becomes("b", "Denied/address-reserved")
	})
	t.Run("failure", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.config.Retry = Backoff{time.Millisecond, 5 * time.Millisecond} })
		w.Renewed(past)
		w.create(approved(serving(t, "a", 11, "10.100.0.1")))
		w.until("it was tried", refused(w))
		if got := w.state("a"); got != "Approved/KubectlApprove" {
			t.Errorf("it is %q", got)
		}
		w.Renewed(future)
		w.becomes("a", "Approved/KubectlApprove Failed/SignerValidationFailure")
	})
	t.Run("certificate", func(t *testing.T) {
		w := newWorld(t, func(w *world) {
			w.config.Retry = Backoff{time.Millisecond, 5 * time.Millisecond}
			w.duringSigning(sync.OnceFunc(func() { w.Renewed(past) }))
		})
		w.create(serving(t, "a", 11, address(11)))
		w.until("it was tried", refused(w))
		if got := w.state("a"); got != "Approved/AutoApproved" {
			t.Errorf("it is %q", got)
		}
		w.Renewed(future)
		w.becomes("a", issued)
	})
	t.Run("pruning", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.config.Retry = Backoff{time.Millisecond, 5 * time.Millisecond} })
		w.Renewed(past)
		w.create(serving(t, "a", 12, address(12)), serving(t, "b", 12, address(12)), serving(t, "c", 12, address(12)))
		w.until("it was tried", refused(w))
		if n := w.deletions(); n != 0 {
			t.Errorf("%d deletions", n)
		}
		w.Renewed(future)
		w.until("two are left", func() bool { return w.live("") == "b c" })
	})
}

// tried counts the passes that ended because the lease had run out.
func (w *world) tried() (n int) { return strings.Count(w.log.String(), errLapsed.Error()) }

// Each clock alone is enough: the monotonic one stands still while a machine is suspended.
func TestALeaseEndsByEitherClock(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		wall, monotonic time.Duration // by which the end is away
		want            error
	}{
		"both run":                       {time.Second, time.Second, nil},
		"both ended":                     {-time.Second, -time.Second, errLapsed},
		"the machine was suspended":      {-time.Second, time.Second, errLapsed},
		"the clock was set back by much": {time.Hour, -time.Second, errLapsed},
	} {
		until := now.Add(tc.wall)
		(*[2]int64)(unsafe.Pointer(&until))[1] += int64(tc.monotonic - tc.wall) // the monotonic reading, which cannot be set otherwise
		c := &Controller{config: Config{Now: func() time.Time { return now }}}
		c.Renewed(until)
		if err := c.holdsLease(); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&Controller{config: Config{Now: time.Now}}).holdsLease(); err != nil {
		t.Errorf("without an election: %v", err)
	}
}

// What an election tells ends before another may lead, and does not move while the lease cannot be renewed.
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
