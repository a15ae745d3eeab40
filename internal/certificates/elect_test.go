// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func election(client *fake.Clientset, identity string) Election {
	return Election{
		Client: client, Namespace: "kube-system", Name: "muster", Identity: identity, Logger: slog.New(slog.DiscardHandler),
		Duration: 3 * time.Second, Renew: 2 * time.Second, Retry: 20 * time.Millisecond,
	}
}

// candidate runs for leader until it is stopped.
type candidate struct {
	leads chan struct{}
	ended chan error
	stop  func()
}

func run(t *testing.T, e Election, lead func(context.Context)) *candidate {
	t.Helper()
	c := &candidate{leads: make(chan struct{}), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	c.stop = cancel
	go func() {
		c.ended <- Elect(ctx, e, func(ctx context.Context) { close(c.leads); lead(ctx) })
	}()
	t.Cleanup(cancel)
	return c
}

// The next leader starts at once when the first is told to stop, and not before the first has ended.
func TestHandOver(t *testing.T) {
	client := fake.NewClientset()
	var leading atomic.Int32
	together := func(ctx context.Context) {
		if leading.Add(1) > 1 {
			t.Error("two lead at once")
		}
		<-ctx.Done()
		<-time.After(50 * time.Millisecond) // passes in hand
		leading.Add(-1)
	}
	first := run(t, election(client, "a"), together)
	<-first.leads
	second := run(t, election(client, "b"), together)
	start := time.Now()
	first.stop()
	if err := <-first.ended; err != nil {
		t.Error(err)
	}
	<-second.leads
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("taking over took %s: the lease was not given up", took)
	}
	second.stop()
	if err := <-second.ended; err != nil {
		t.Error(err)
	}
}

func TestWhoNeverLedEndsQuietly(t *testing.T) {
	client := fake.NewClientset()
	first := run(t, election(client, "a"), func(ctx context.Context) { <-ctx.Done() })
	<-first.leads
	second := run(t, election(client, "b"), func(context.Context) { t.Error("it leads") })
	second.stop()
	if err := <-second.ended; err != nil {
		t.Error(err)
	}
	first.stop()
	if err := <-first.ended; err != nil {
		t.Error(err)
	}
}

func TestALostLease(t *testing.T) {
	client := fake.NewClientset()
	var cut atomic.Bool
	client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return cut.Load(), nil, errors.New("no connection")
	})
	var cause error
	var mu sync.Mutex
	e := election(client, "a")
	e.Duration, e.Renew = time.Second, 200*time.Millisecond
	first := run(t, e, func(ctx context.Context) {
		<-ctx.Done()
		mu.Lock()
		defer mu.Unlock()
		cause = context.Cause(ctx)
	})
	<-first.leads
	cut.Store(true)
	if err := <-first.ended; !errors.Is(err, ErrLost) {
		t.Errorf("ended with %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !errors.Is(cause, ErrLost) {
		t.Errorf("the leader was told %v", cause)
	}
}

func TestElectRefuses(t *testing.T) {
	for name, change := range map[string]func(*Election){
		"no client":                 func(e *Election) { e.Client = nil },
		"no identity":               func(e *Election) { e.Identity = "" },
		"no name":                   func(e *Election) { e.Name = "" },
		"deadlines that do not fit": func(e *Election) { e.Renew = time.Hour },
	} {
		e := election(fake.NewClientset(), "a")
		change(&e)
		if err := Elect(t.Context(), e, func(context.Context) {}); err == nil {
			t.Errorf("accepted %s", name)
		}
	}
}

// Who stands by keeps its cache and decides nothing; when it leads it goes on from there.
func TestStandingBy(t *testing.T) {
	w := prepareWorld(t)
	w.config.Metrics = prometheus.NewRegistry()
	c, err := New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.Controller = c
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { c.Watch(ctx) })
	w.create(serving(t, "a", 11, address(11)))
	w.until("it is ready and knows the request", func() bool { return c.Ready() == nil && len(c.informer.GetStore().List()) == 1 })
	w.machine(11) // a change
	w.Changed(changeAll())
	if n := c.queue.depth(); n != 0 || w.register.running.Load() || w.state("a") != "" {
		t.Errorf("%d are queued, register %t, request %q", n, w.register.running.Load(), w.state("a"))
	}
	group.Go(func() { c.Lead(ctx) })
	w.becomes("a", issued)
}
