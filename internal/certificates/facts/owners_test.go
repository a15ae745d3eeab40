// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/certificates/policy"
)

func named(name string) Subject { return Subject{Name: name} }

// ownedBy is the answer that machines have a name, none if there are none.
func ownedBy(name string, at time.Time, ids ...string) Answer {
	var machines []policy.Machine
	for _, id := range ids {
		machines = append(machines, policy.Machine{ID: id, NodeName: "node of " + id})
	}
	return Answer{named(name), policy.Know(machines, "oracle", at), 30 * time.Second}
}

func soonOwners(t *testing.T, f policy.Fact[[]policy.Machine]) {
	t.Helper()
	if f.State != policy.Unknown || !f.Soon || f.Source != "oracle" {
		t.Errorf("got %+v, want unknown and soon", f)
	}
}

func TestOwnersAreLookedUpOnceAndKept(t *testing.T) {
	for _, owners := range [][]string{nil, {"i-1"}, {"i-1", "i-2"}} {
		synctest.Test(t, func(t *testing.T) {
			a, e := answers(0)
			soonOwners(t, a.Owners("x"))
			soonOwners(t, a.Owners("x"))
			if !a.Wait(t.Context()) || !cmp.Equal(a.Take(10), []Subject{named("x")}) {
				t.Fatal("not to be looked up once")
			}
			soonOwners(t, a.Owners("x"))
			if got := a.Take(10); len(got) > 0 {
				t.Errorf("looked up again while it is: %v", got)
			}
			at := time.Now()
			a.Put(ownedBy("x", at, owners...))
			want := []Change{{Names: []string{"x"}}} // and no caller is woken up that asked for more of an owner
			if diff := cmp.Diff(want, e.heard()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			elapse(30*time.Second - 1)
			if f := a.Owners("x"); f.State != policy.Known || !cmp.Equal(ids(f.Value), owners) || !f.At.Equal(at) || len(a.Take(1)) > 0 {
				t.Errorf("it was not kept: %+v", f)
			}
			if f := a.Seen("node of i-1"); len(f.Value) > 0 {
				t.Errorf("who has a name is taken for all that he has: %+v", f)
			}
			elapse(1)
			soonOwners(t, a.Owners("x")) // that nobody had it approves: it must not be old
			a.Take(1)
			a.Put(ownedBy("x", time.Now(), owners...))
			if diff := cmp.Diff(want, e.heard()); diff != "" {
				t.Errorf("who waits is not told that all is as before (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnersThatNobodyCouldTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, e := answers(0)
		a.Owners("x")
		a.Take(1)
		failed := Answer{named("x"), policy.DontKnow[[]policy.Machine]("oracle", "it is silent"), time.Second}
		a.Put(failed)
		e.heard()
		elapse(2 * time.Second)
		if f := a.Owners("x"); !cmp.Equal(f, failed.Fact) || len(a.Take(1)) != 1 {
			t.Errorf("got %+v", f)
		}
		a.Put(failed)
		if c := e.heard(); len(c) > 0 {
			t.Errorf("told that nothing changed: %+v", c)
		}
		elapse(oldNo + 1)
		soonOwners(t, a.Owners("x"))
	})
}

// An answer about a machine named all that it has: that is not forgotten when the answer about a name says otherwise.
func TestWhatMachinesHaveCountsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, e := answers(0)
		a.Get(nodeOf("n"))
		a.Get(nodeOf("m"))
		a.Owners("10.0.0.1")
		a.Take(9)
		earlier := time.Now()
		elapse(time.Second)
		a.Put(
			answerOf(nodeOf("n"), policy.Know(made("i-1", "n", "", "10.0.0.1"), "oracle", earlier), 10*time.Second),
			answerOf(nodeOf("m"), policy.Know(made("i-2", "m", "", "10.0.0.1"), "oracle", time.Now()), time.Minute),
			ownedBy("10.0.0.1", time.Now(), "i-0", "i-2"),
		)
		if c := e.heard(); len(c) != 1 || !cmp.Equal(c[0].Names, []string{"10.0.0.1", "m", "n"}) || !cmp.Equal(c[0].Machines, []string{"i-1", "i-2"}) {
			t.Errorf("what was found out together was told in %+v", c)
		}
		if f := a.Owners("10.0.0.1"); !cmp.Equal(ids(f.Value), []string{"i-0", "i-1", "i-2"}) || !f.At.Equal(earlier) {
			t.Errorf("got %+v", f)
		}
		if f := a.Seen("10.0.0.1"); !cmp.Equal(ids(f.Value), []string{"i-1", "i-2"}) {
			t.Errorf("seen %+v", f)
		}
		elapse(10 * time.Second)
		if f := a.Owners("10.0.0.1"); !cmp.Equal(ids(f.Value), []string{"i-0", "i-2"}) {
			t.Errorf("by an old answer, too: %+v", f)
		}
	})
}

// Names that nobody has are as many as somebody likes to make up. They neither push out nor hold up what is asked about
// machines.
func TestAFloodOfNames(t *testing.T) {
	a, _ := answers(100)
	a.Get(nodeOf("n"))
	a.Take(1)
	a.Put(answerOf(nodeOf("n"), policy.Know(made("i-1", "n", "alias", "10.0.0.1"), "oracle", time.Now()), time.Hour))
	a.Owners("10.0.0.1")
	a.Owners("late") // not known to be a machine's yet
	flood := func() {
		for n := range 1000 {
			a.Owners(fmt.Sprint("x", n))
		}
	}
	flood()
	if n := len(a.entries); n != 102 {
		t.Errorf("%d answers are kept", n)
	}
	a.Get(nodeOf("new"))
	a.Owners("new")
	flood()
	got := a.Take(6)
	want := []Subject{named("new"), named("x999"), nodeOf("new"), named("x998"), named("10.0.0.1"), named("x997")}
	if !cmp.Equal(got, want) {
		t.Errorf("looked up %v", got)
	}
	if f := a.Get(nodeOf("n")); f.State != policy.Known {
		t.Errorf("the answer about a machine was pushed out: %+v", f)
	}
	a.Put(ownedBy("10.0.0.1", time.Now(), "i-1"))
	flood()
	if f := a.Owners("10.0.0.1"); f.State != policy.Known {
		t.Errorf("the answer about a machine's address was pushed out: %+v", f)
	}
	// A value that turns out to be a machine's does not count as unowned any more.
	a.Owners("late")
	a.Put(answerOf(nodeOf("new"), policy.Know(made("i-2", "new", "late", ""), "oracle", time.Now()), time.Hour))
	a.Owners("late")
	flood()
	if got := a.Take(1); !cmp.Equal(got, []Subject{named("late")}) {
		t.Errorf("looked up %v", got)
	}
	a.Put(ownedBy("late", time.Now(), "i-2"))
	flood()
	if f := a.Owners("late"); f.State != policy.Known {
		t.Errorf("the answer about a machine's name was pushed out: %+v", f)
	}
	if got := a.Take(1000); len(got) != 100-3 {
		t.Errorf("%d names wait", len(got))
	}
}

func TestWhoAsksAgainComesFirst(t *testing.T) {
	a, _ := answers(0)
	for _, n := range []string{"1", "2", "3", "1"} {
		a.Owners(n)
	}
	if got := a.Take(9); !cmp.Equal(got, []Subject{named("1"), named("3"), named("2")}) {
		t.Errorf("got %v", got)
	}
}

func TestBatchTellsOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := made("i-1", "n", "", "10.0.0.1"), made("i-2", "m", "", "10.0.0.1")
		s := &service{machines: map[Subject][]policy.Machine{{Node: "n"}: {one}, named("n"): {one}, named("10.0.0.1"): {two, one}}}
		b, e := batch(t, s)
		started := time.Now()
		b.MachineOfNode("n")
		for _, n := range []string{"n", "10.0.0.1", "nobody's"} {
			if f := b.Owners(n); f.State != policy.Unknown || !f.Soon {
				t.Errorf("before it was asked: %+v", f)
			}
		}
		elapse(time.Second)
		if changes := e.heard(); len(changes) != 1 || !slices.Contains(changes[0].Names, "nobody's") {
			t.Errorf("told %+v", changes)
		}
		at := started.Add(50 * time.Millisecond)
		check := func(when string) {
			t.Helper()
			for name, want := range map[string][]string{"n": {"i-1"}, "10.0.0.1": {"i-1", "i-2"}, "nobody's": nil} {
				if f := b.Owners(name); f.State != policy.Known || !cmp.Equal(ids(f.Value), want) || !f.At.Equal(at) {
					t.Errorf("%s: owners of %s: %+v", when, name, f)
				}
			}
		}
		check("at once")
		if f := b.Owners("10.0.0.1"); f.Value[1].NodeName != "m" || len(f.Value[1].Addresses) > 0 {
			t.Errorf("got %+v", f.Value[1])
		}
		for _, n := range []string{"", "never"} {
			if f := b.Owners(n); f.State != policy.Known || len(f.Value) > 0 {
				t.Errorf("owners of %q: %+v", n, f)
			}
		}
		elapse(28 * time.Second)
		check("after a while")
		if batches, _ := s.asked(); !cmp.Equal(batches, []int{4}) {
			t.Errorf("asked in batches of %v", batches)
		}
		elapse(1100 * time.Millisecond)
		s.set(func() { s.fail = errors.New("RequestLimitExceeded") })
		if f := b.Owners("nobody's"); !f.Soon {
			t.Errorf("an old answer: %+v", f)
		}
		elapse(time.Second)
		if f := b.Owners("nobody's"); f.State != policy.Unknown || f.Soon || f.Why != "RequestLimitExceeded" {
			t.Errorf("when it failed: %+v", f)
		}
		e.heard()
		s.set(func() { s.fail = nil })
		elapse(time.Minute)
		b.Owners("nobody's")
		elapse(time.Second)
		if f := b.Owners("nobody's"); f.State != policy.Known {
			t.Errorf("when it works again: %+v", f)
		}
		if c := e.heard(); !slices.ContainsFunc(c, func(c Change) bool { return c.All || slices.Contains(c.Names, "nobody's") }) {
			t.Errorf("told %+v", c)
		}
	})
}

// A machine may be another in each source. Until it is known which one an owner is, nobody is told that it is another.
func TestOwnersWaitUntilItIsKnownWhoTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		have := made("i-1", "n", "", "10.0.0.1 10.0.0.2")
		s := &service{machines: map[Subject][]policy.Machine{{Node: "n"}: {have}, named("10.0.0.2"): {have}}}
		b, _ := batch(t, s)
		first := rack{machine: made("rack-1", "n", "", "10.0.0.1")}
		both, err := Combine(Any, first, b)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := Combine(Any, b)
		if err != nil {
			t.Fatal(err)
		}
		both.Owners("10.0.0.2")
		elapse(time.Second)
		if f := alone.Owners("10.0.0.2"); !cmp.Equal(f.Value, []string{"i-1"}) {
			t.Errorf("of one source: %+v", f)
		}
		elapse(time.Second)
		if batches, _ := s.asked(); !cmp.Equal(batches, []int{1}) {
			t.Errorf("asked in batches of %v, though an ID is one's own", batches)
		}
		want := policy.Fact[[]string]{Source: "service", Why: "which machine it is that has it is being looked up", Soon: true}
		if diff := cmp.Diff(want, both.Owners("10.0.0.2"), cmpopts.EquateComparable(time.Time{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		elapse(time.Second)
		if f := both.Owners("10.0.0.2"); !cmp.Equal(f.Value, []string{"rack-1"}) {
			t.Errorf("once it is known: %+v", f)
		}
	})
}

// rack is a source that knows one machine.
type rack struct {
	Source
	machine policy.Machine
}

func (r rack) Name() string { return "first" }

func (r rack) MachineOfNode(node string) policy.Fact[policy.Machine] {
	if node != r.machine.NodeName {
		return policy.None[policy.Machine](r.Name(), time.Now())
	}
	return policy.Know(r.machine, r.Name(), time.Now())
}

func (r rack) Owners(name string) policy.Fact[[]policy.Machine] {
	if !r.machine.Owns(name) {
		return policy.Know[[]policy.Machine](nil, r.Name(), time.Now())
	}
	return policy.Know([]policy.Machine{r.machine}, r.Name(), time.Now())
}
