// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	v1alpha1 "muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/policy"
)

const (
	nodeA = "ip-192-168-64-11.ec2.internal"
	nodeB = "ip-192-168-64-12.ec2.internal"
)

func machine(id, node, ip string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.Name, m.Spec.ClusterName, m.Spec.NodeGroup, m.Status.NodeName = id, "main", "workers", node
	if node != "" {
		m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}, {Type: corev1.NodeInternalDNS, Address: node}}
	}
	return m
}

// plane is a management plane that can be broken.
type plane struct {
	mu       sync.Mutex
	machines []v1alpha1.Machine
	stream   *watch.FakeWatcher
	down     error
}

func (p *plane) List(metav1.ListOptions) (runtime.Object, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down != nil {
		return nil, p.down
	}
	return &v1alpha1.MachineList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: p.machines}, nil
}

func (p *plane) Watch(metav1.ListOptions) (watch.Interface, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down != nil {
		return nil, p.down
	}
	p.stream = watch.NewFakeWithChanSize(100, false)
	return p.stream, nil
}

func (p *plane) IsWatchListSemanticsUnSupported() bool { return true }

func (p *plane) set(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = err
	if err != nil && p.stream != nil {
		p.stream.Stop()
	}
}

// start runs an inventory in the bubble of the test and ends it with the test.
func start(t *testing.T, p cache.ListerWatcher, cluster string) (*Watch, func() []Change) {
	t.Helper()
	var mu sync.Mutex
	var changes []Change
	i, err := NewMachines(WatchConfig{Objects: p, ClusterName: cluster, Logger: slog.New(slog.DiscardHandler), OnChange: func(c Change) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); i.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return i, func() []Change {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := changes
		changes = nil
		return got
	}
}

func settle(t *testing.T, i *Watch) {
	t.Helper()
	if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
		t.Fatal("never synced")
	}
	synctest.Wait()
}

// elapse lets time of a bubble go by.
func elapse(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a synctest bubble it takes no time
}

func TestWatchFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := machine("i-a", nodeA, "192.168.64.11"), machine("i-b", nodeB, "192.168.64.12")
		b.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		p := &plane{machines: []v1alpha1.Machine{*a, *b, *machine("i-new", "", "")}}
		p.mu.Lock() // nothing can be read yet
		i, _ := start(t, p, "main")
		if f := i.Machine("i-a"); f.State != policy.Unknown || f.Why == "" || i.HasSynced() || i.Status().Synced {
			t.Errorf("before it has read anything: %+v", f)
		}
		p.mu.Unlock()
		settle(t, i)
		now := time.Now()
		known := func(m policy.Machine) policy.Fact[policy.Machine] { return policy.Know(m, "machines", now) }
		wantA := policy.Machine{ID: "i-a", NodeName: nodeA, Names: []string{nodeA}, Addresses: []netip.Addr{netip.MustParseAddr("192.168.64.11")}, Group: "workers"}
		wantB := policy.Machine{ID: "i-b", NodeName: nodeB, Names: []string{nodeB}, Addresses: []netip.Addr{netip.MustParseAddr("192.168.64.12")}, Deleting: true, Group: "workers"}
		for _, tc := range []struct {
			name      string
			got, want policy.Fact[policy.Machine]
		}{
			{"by ID", i.Machine("i-a"), known(wantA)},
			{"by node", i.MachineOfNode(nodeA), known(wantA)},
			{"being deleted", i.MachineOfNode(nodeB), known(wantB)},
			{"without a name", i.Machine("i-new"), known(policy.Machine{ID: "i-new", Group: "workers"})},
			{"none by ID", i.Machine("i-x"), policy.None[policy.Machine]("machines", now)},
			{"none by node", i.MachineOfNode("x"), policy.None[policy.Machine]("machines", now)},
			{"none by an empty node name", i.MachineOfNode(""), policy.None[policy.Machine]("machines", now)},
		} {
			if diff := cmp.Diff(tc.want, tc.got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.name, diff)
			}
		}
		for name, want := range map[string][]string{nodeA: {"i-a"}, "192.168.64.12": {"i-b"}, "192.168.64.99": nil, "": nil} {
			if f := i.Owners(name); f.State != policy.Known || !cmp.Equal(ids(f.Value), want) {
				t.Errorf("owners of %q: %+v, want %v", name, f, want)
			}
		}
	})
}

// gated is a plane that answers no list before it is opened.
type gated struct {
	cache.ListerWatcher
	open chan struct{}
}

func (g gated) List(o metav1.ListOptions) (runtime.Object, error) {
	<-g.open
	return g.ListerWatcher.List(o) //nolint:staticcheck // the interface that is implemented here has this form of it
}

func (gated) IsWatchListSemanticsUnSupported() bool { return true }

// Requests wait for the change: it comes when all is read, not at the next look of a poll. No time elapses in the
// bubble.
func TestWatchTellsAtOnceThatAllIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gated{&plane{}, make(chan struct{})}
		i, changes := start(t, p, "main")
		if c := changes(); len(c) > 0 || i.HasSynced() {
			t.Errorf("before it was read: %+v", c)
		}
		close(p.open)
		if c := changes(); !cmp.Equal(c, []Change{{All: true}}) || !i.HasSynced() {
			t.Errorf("changes: %+v", c)
		}
	})
}

func TestWatchOfOneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := machine("i-other", nodeA, "192.168.64.11")
		other.Spec.ClusterName = "other"
		none := machine("i-none", "", "192.168.64.12") // of no cluster
		none.Spec.ClusterName, none.Spec.NodeGroup = "", ""
		p := &plane{machines: []v1alpha1.Machine{*other, *none}}
		i, changes := start(t, p, "main")
		settle(t, i)
		if f := i.Machine("i-other"); f.State != policy.Absent {
			t.Errorf("by ID: %+v", f)
		}
		if f := i.MachineOfNode(nodeA); f.State != policy.Absent {
			t.Errorf("by node: %+v", f)
		}
		if f := i.Owners("192.168.64.11"); len(f.Value) > 0 {
			t.Errorf("owners: %+v", f)
		}
		for id, want := range map[string]policy.Fact[string]{
			"i-other": policy.Know("other", "machines", time.Now()), "i-none": policy.None[string]("machines", time.Now()), "i-x": policy.None[string]("machines", time.Now()),
		} {
			if diff := cmp.Diff(want, i.Elsewhere(id)); diff != "" {
				t.Errorf("the other cluster of %s (-want +got):\n%s", id, diff)
			}
		}
		if c := changes(); !cmp.Equal(c, []Change{{Machines: []string{"i-other"}}, {All: true}}) {
			t.Errorf("changes: %+v", c)
		}
	})
}

func TestWatchDoesNotChooseBetweenTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plane{machines: []v1alpha1.Machine{*machine("i-b", nodeA, "192.168.64.11"), *machine("i-a", nodeA, "192.168.64.11")}}
		i, _ := start(t, p, "")
		settle(t, i)
		if f := i.MachineOfNode(nodeA); f.State != policy.Unknown || f.Why != "machines i-a and i-b both have this node name" {
			t.Errorf("got %+v", f)
		}
		if f := i.Owners("192.168.64.11"); !cmp.Equal(ids(f.Value), []string{"i-a", "i-b"}) {
			t.Errorf("owners %+v", f)
		}
	})
}

func TestWatchTellsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		i, changes := start(t, p, "main")
		settle(t, i)
		if c := changes(); !cmp.Equal(c, []Change{{All: true}}) {
			t.Errorf("when it has been read: %+v", c)
		}
		m := machine("i-a", "", "")
		p.stream.Add(m)
		want := []Change{{Machines: []string{"i-a"}}}
		if diff := cmp.Diff(want, changes()); diff != "" {
			t.Errorf("added (-want +got):\n%s", diff)
		}
		m = machine("i-a", nodeA, "192.168.64.11")
		p.stream.Modify(m)
		want = []Change{{Machines: []string{"i-a"}, Nodes: []string{nodeA}, Names: []string{"192.168.64.11", nodeA}}}
		if diff := cmp.Diff(want, changes()); diff != "" {
			t.Errorf("named (-want +got):\n%s", diff)
		}
		m = m.DeepCopy()
		m.Status.Phase = v1alpha1.MachineReady
		m.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepReady}}
		p.stream.Modify(m)
		if c := changes(); len(c) > 0 {
			t.Errorf("a change that matters to nobody was told: %+v", c)
		}
		p.stream.Delete(m)
		if diff := cmp.Diff(want, changes()); diff != "" {
			t.Errorf("deleted (-want +got):\n%s", diff)
		}
	})
}

func TestWatchThatHasLostItsPlaneKnowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plane{machines: []v1alpha1.Machine{*machine("i-a", nodeA, "192.168.64.11")}}
		i, changes := start(t, p, "main")
		settle(t, i)
		changes()
		p.set(errors.New("connection refused"))
		elapse(4 * time.Second)
		broke := i.Machine("i-a")
		if broke.State != policy.Known || time.Since(broke.At) < 2*time.Second {
			t.Errorf("broken for a moment: %+v", broke)
		}
		if s, want := i.Status(), (SourceStatus{"machines", true, time.Since(broke.At), "connection refused"}); s != want {
			t.Errorf("status %+v, want %+v", s, want)
		}
		elapse(4 * time.Second)
		if f := i.Machine("i-a"); f.State != policy.Unknown || !strings.Contains(f.Why, "s old (of 2000-01-01T00:00:0") || !strings.HasSuffix(f.Why, "and may be 5s: connection refused") {
			t.Errorf("by ID: %+v", f)
		}
		if f := i.MachineOfNode(nodeA); f.State != policy.Unknown {
			t.Errorf("by node: %+v", f)
		}
		if f := i.Owners(nodeA); f.State != policy.Unknown {
			t.Errorf("owners: %+v", f)
		}
		p.set(nil)
		elapse(2 * time.Minute)
		if f := i.Machine("i-a"); f.State != policy.Known || !f.At.Equal(time.Now()) {
			t.Errorf("restored: %+v", f)
		}
		if s, want := i.Status(), (SourceStatus{Name: "machines", Synced: true}); s != want {
			t.Errorf("status when restored: %+v", s)
		}
		all := 0
		for _, c := range changes() {
			if c.All {
				all++
			}
		}
		if all != 1 {
			t.Errorf("told %d times that everything may have changed", all)
		}
	})
}

// A server that hangs breaks no watch for long. A fact that was not confirmed for five seconds is not enough for an
// approval.
func TestWatchWhosePlaneHangsKnowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var changes []Change
		slow := func(context.Context) error { elapse(listenFor - time.Millisecond); return nil }
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		there := func(context.Context) error { return nil }
		ask := there
		i, err := NewMachines(WatchConfig{
			Objects: &plane{machines: []v1alpha1.Machine{*machine("i-a", nodeA, "192.168.64.11")}}, Logger: slog.New(slog.DiscardHandler),
			OnChange: func(c Change) {
				mu.Lock()
				defer mu.Unlock()
				changes = append(changes, c)
			},
			Answers: func(ctx context.Context) error {
				mu.Lock()
				now := ask
				mu.Unlock()
				return now(ctx)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		running(t, i)
		settle(t, i)
		elapse(time.Hour)
		if f := i.MachineOfNode(nodeA); f.State != policy.Known || time.Since(f.At) > listenEvery {
			t.Fatalf("while it answers: %+v", f)
		}
		mu.Lock()
		ask = slow
		mu.Unlock()
		for range 100 {
			elapse(290 * time.Millisecond)
			if f := i.MachineOfNode(nodeA); f.State != policy.Known {
				t.Fatalf("while it is slow: %+v", f)
			}
		}
		mu.Lock()
		ask, changes = there, nil
		mu.Unlock()
		elapse(listenFor + listenEvery)
		mu.Lock()
		ask = hangs
		mu.Unlock()
		elapse(3 * time.Second)
		if f := i.MachineOfNode(nodeA); f.State != policy.Known {
			t.Errorf("after a moment: %+v", f)
		}
		elapse(5 * time.Second)
		if f := i.MachineOfNode(nodeA); f.State != policy.Unknown || !strings.HasPrefix(f.Why, "what it says is ") {
			t.Errorf("after long: %+v", f)
		}
		if s := i.Status(); s.Age < 5*time.Second || s.Problem != "nothing was heard of it" {
			t.Errorf("status %+v", s)
		}
		mu.Lock()
		ask = there
		mu.Unlock()
		elapse(5 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if f := i.MachineOfNode(nodeA); f.State != policy.Known || !cmp.Equal(changes, []Change{{All: true}}) {
			t.Errorf("when it answers again: %+v, told %+v", f, changes)
		}
	})
}

func TestNewMachinesRefuses(t *testing.T) {
	tell, logger := func(Change) {}, slog.New(slog.DiscardHandler)
	for missing, c := range map[string]WatchConfig{
		"objects":          {OnChange: tell, Logger: logger},
		"a logger":         {Objects: &plane{}, OnChange: tell},
		"somebody to tell": {Objects: &plane{}, Logger: logger},
	} {
		if _, err := NewMachines(c); err == nil {
			t.Errorf("without %s: accepted", missing)
		}
	}
}

func ids(machines []policy.Machine) []string {
	var out []string
	for _, m := range machines {
		out = append(out, m.ID)
	}
	return out
}

// Who asks whether a machine is gone is answered by the list that was read last, also when the watch has long been
// broken.
func TestWatchHasLastSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plane{machines: []v1alpha1.Machine{*machine("i-a", nodeA, "192.168.64.11")}}
		p.mu.Lock() // nothing can be read yet
		i, _ := start(t, p, "main")
		if f := i.LastSeen("i-a"); f.State != policy.Unknown || f.Why == "" {
			t.Errorf("before it has read anything: %+v", f)
		}
		p.mu.Unlock()
		settle(t, i)
		p.set(errors.New("it is away"))
		elapse(time.Hour)
		if f := i.Machine("i-a"); f.State != policy.Unknown {
			t.Errorf("for certificates: %+v", f)
		}
		if a, b := i.LastSeen("i-a"), i.LastSeen("i-b"); a.State != policy.Known || a.Value.ID != "i-a" || b.State != policy.Absent {
			t.Errorf("last seen: %+v and %+v", a, b)
		}
	})
}
