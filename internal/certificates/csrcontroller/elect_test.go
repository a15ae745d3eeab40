// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	lasting := func(identity string) Election { // a lease that was not given up is noticed on the slowest computer
		e := election(client, identity)
		e.Duration = time.Minute
		return e
	}
	first := run(t, lasting("a"), together)
	<-first.leads
	second := run(t, lasting("b"), together)
	start := time.Now()
	first.stop()
	if err := <-first.ended; err != nil {
		t.Error(err)
	}
	<-second.leads
	if took := time.Since(start); took > 30*time.Second {
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

// A standby keeps its cache and decides nothing; when it leads it goes on from there.
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
	w.becomes("a", wasIssued)
}

func leases() schema.GroupResource {
	return coordinationv1.SchemeGroupVersion.WithResource("leases").GroupResource()
}

// problem is a line of the log that is not only news.
type problem struct{ Level, Lease, Verb, Error, Fix string }

func problems(t *testing.T, log *lockedBuffer) (all []problem) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var p problem
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		if p.Level != "INFO" {
			all = append(all, p)
		}
	}
	return all
}

// A replica that is not let lead says so in one line with what to do, however often it tries, and goes on by itself
// when it is.
func TestARefusedLease(t *testing.T) {
	forbidden := apierrors.NewForbidden(leases(), "muster", errors.New("no rule"))
	outage := errors.New("no connection")
	for name, tc := range map[string]struct {
		fail map[string]error // by verb
		want []string         // of the log, until it leads
		fix  string
	}{
		"nothing allowed": {map[string]error{"get": forbidden, "create": forbidden, "update": forbidden}, []string{"ERROR get"}, "get, create and update of leases"},
		"read only":       {map[string]error{"create": forbidden, "update": forbidden}, []string{"ERROR create"}, "get, create and update of leases"},
		"no namespace":    {map[string]error{"create": apierrors.NewNotFound(corev1.Resource("namespaces"), "kube-system")}, []string{"ERROR create"}, "create the namespace kube-system"},
		"an outage":       {map[string]error{"get": outage, "create": outage, "update": outage}, []string{"WARN get"}, ""},
		"a race":          {map[string]error{"create": apierrors.NewAlreadyExists(leases(), "muster")}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			var tries, mended atomic.Int32
			client.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
				err := tc.fail[a.GetVerb()]
				if mended.Load() == 1 {
					err = nil
				}
				tries.Add(1)
				return err != nil, nil, err
			})
			var log lockedBuffer
			var refused atomic.Value
			e := election(client, "a")
			e.Logger = slog.New(slog.NewJSONHandler(&log, nil))
			e.Refused = func(err error) { refused.Store(fmt.Sprint(err)) }
			c := run(t, e, func(ctx context.Context) { <-ctx.Done() })
			for tries.Load() < 8 {
				pause()
			}
			var got []string
			for _, p := range problems(t, &log) {
				got = append(got, p.Level+" "+p.Verb)
				if p.Lease != "kube-system/muster" || p.Error == "" || !strings.Contains(p.Fix, tc.fix) || (p.Fix == "") != (tc.fix == "") {
					t.Errorf("it says %+v", p)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("told %q, want %q", got, tc.want)
			}
			if said, _ := refused.Load().(string); strings.Contains(said, "refused") != (tc.fix != "") {
				t.Errorf("it is refused: %q", said)
			}
			mended.Store(1)
			<-c.leads
			if said, _ := refused.Load().(string); strings.Contains(said, "refused") {
				t.Errorf("it leads, and is refused: %q", said)
			}
			c.stop()
			if err := <-c.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A leader whose lease was deleted makes it anew, and one that is not let renew it says why before it ends.
func TestALeaseThatIsTakenAway(t *testing.T) {
	client := fake.NewClientset()
	var refuse atomic.Bool
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuse.Load(), nil, apierrors.NewForbidden(leases(), "muster", errors.New("no rule"))
	})
	var log lockedBuffer
	e := election(client, "a")
	e.Duration, e.Renew, e.Logger = 3*time.Second, time.Second, slog.New(slog.NewJSONHandler(&log, nil))
	c := run(t, e, func(ctx context.Context) { <-ctx.Done() })
	<-c.leads
	there := client.CoordinationV1().Leases("kube-system")
	if err := there.Delete(t.Context(), "muster", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for anew := false; !anew; pause() {
		_, err := there.Get(t.Context(), "muster", metav1.GetOptions{})
		anew = err == nil
	}
	if p := problems(t, &log); len(p) > 0 {
		t.Errorf("it says %+v", p)
	}
	refuse.Store(true)
	if err := <-c.ended; !errors.Is(err, ErrLost) {
		t.Errorf("ended with %v", err)
	}
	if p := problems(t, &log); len(p) != 1 || p[0].Level != "ERROR" || p[0].Verb != "update" {
		t.Errorf("it says %+v", p)
	}
}

func TestWhatIsToldOfALease(t *testing.T) {
	outage, forbidden := errors.New("no connection"), apierrors.NewForbidden(leases(), "muster", errors.New("no rule"))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	type step struct {
		verb string
		err  error
	}
	for name, tc := range map[string]struct {
		steps []step
		want  int
	}{
		"an outage twice, as one that stands by sees it": {[]step{{verbGet, outage}, {verbGet, outage}, {verbGet, nil}, {verbGet, outage}}, 2},
		"an outage as the leader sees it":                {[]step{{verbUpdate, outage}, {verbGet, outage}, {verbUpdate, outage}, {verbGet, nil}, {verbUpdate, outage}}, 1},
		"an outage, and nothing allowed after it":        {[]step{{verbGet, outage}, {verbGet, forbidden}, {verbGet, forbidden}}, 2},
		"the end of the program":                         {[]step{{verbGet, context.Canceled}}, 0},
	} {
		var log lockedBuffer
		l := newLease(Election{Client: fake.NewClientset(), Logger: slog.New(slog.NewJSONHandler(&log, nil)), Refused: func(error) {}})
		for _, s := range tc.steps {
			ctx := t.Context()
			if errors.Is(s.err, context.Canceled) {
				ctx = over
			}
			l.note(ctx, s.verb, s.err)
		}
		if told := problems(t, &log); len(told) != tc.want {
			t.Errorf("%s: told %+v, want %d", name, told, tc.want)
		}
	}
}
