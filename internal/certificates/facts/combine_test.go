// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/facts/factstest"
	"muster.dev/muster/internal/certificates/policy"
)

// three are sources a, b and c, as one.
type three struct {
	*facts.Combined
	a, b, c *factstest.Source
}

func combine(t *testing.T, mode facts.Mode) three {
	t.Helper()
	at := time.Unix(1000, 0)
	source := func(name string) *factstest.Source {
		at = at.Add(-time.Second) // each is older than the one before
		now := at
		return &factstest.Source{Called: name, Now: func() time.Time { return now }}
	}
	s := three{a: source("a"), b: source("b"), c: source("c")}
	var err error
	if s.Combined, err = facts.Combine(mode, s.a, s.b, s.c); err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	newest = time.Unix(999, 0)
	middle = time.Unix(998, 0)
	oldest = time.Unix(997, 0)
)

func TestElsewhere(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(three)
		want   policy.Fact[string]
	}{
		{"none knows it as another's", func(s three) { s.a.Put(facts.Made("i-1", "n", "n", "10.0.0.1")) }, policy.None[string]("a", newest)},
		{"one knows", func(s three) { s.c.PutElsewhere("i-1", "blue") }, policy.Know("blue", "c", oldest)},
		{"one cannot tell, and another knows", func(s three) { s.a.Break("down"); s.b.PutElsewhere("i-1", "blue") }, policy.Know("blue", "b", middle)},
		{"the first cannot tell", func(s three) { s.a.Break("down") }, policy.DontKnow[string]("a", "down")},
		{"another cannot tell", func(s three) { s.b.Break("down") }, policy.DontKnow[string]("b", "down")},
	} {
		for _, mode := range []facts.Mode{facts.Any, facts.All} {
			s := combine(t, mode)
			tc.change(s)
			if diff := cmp.Diff(tc.want, s.Elsewhere("i-1")); diff != "" {
				t.Errorf("%s, by %s (-want +got):\n%s", tc.name, mode, diff)
			}
		}
	}
	alone, err := facts.Combine(facts.Any, facts.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	if f := alone.Elsewhere("i-1"); f.State != policy.Absent || time.Since(f.At) > time.Minute {
		t.Errorf("where no source knows clusters: %+v", f)
	}
}

func TestMachineOfNodeByAny(t *testing.T) {
	first, second := facts.Made("i-1", "n", "n x", "10.0.0.1"), facts.Made("other", "n", "n y", "10.0.0.2")
	first.Group = "workers"
	deleting := second
	deleting.Deleting = true
	gone := first
	gone.Deleting = true
	for _, tc := range []struct {
		name   string
		change func(three)
		want   policy.Fact[policy.Machine]
	}{
		{"none knows", func(three) {}, policy.None[policy.Machine]("a and b and c", oldest)},
		{"the first knows", func(s three) { s.a.Put(first); s.b.Put(second) }, policy.Know(first, "a", newest)},
		{"only another knows", func(s three) { s.b.Put(second) }, policy.Know(second, "b", middle)},
		{"the first cannot tell", func(s three) { s.a.Break("down"); s.b.Put(second) }, policy.Know(second, "b", middle)},
		{"another cannot tell", func(s three) { s.a.Put(first); s.b.Break("down") }, policy.Know(first, "a", newest)},
		{"one cannot tell and none knows", func(s three) { s.b.Break("down") }, policy.DontKnow[policy.Machine]("b", "down")},
		{"two cannot tell", func(s three) { s.a.Break("off"); s.c.Unsync(true) }, policy.DontKnow[policy.Machine]("a and c", "a: off; c: it has not been read yet")},
		{"one is finding out", func(s three) { s.a.Break("off"); s.c.Ask() }, policy.Fact[policy.Machine]{Source: "a and c", Why: "a: off; c: it is being looked up", Soon: true}},
		{"another says that it is being deleted", func(s three) { s.a.Put(first); s.c.Put(deleting) }, policy.Know(gone, "a", newest)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := combine(t, facts.Any)
			tc.change(s)
			if diff := cmp.Diff(tc.want, s.MachineOfNode("n"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachineOfNodeByAll(t *testing.T) {
	put := func(a, b, c policy.Machine) func(three) {
		return func(s three) { s.a.Put(a); s.b.Put(b); s.c.Put(c) }
	}
	one, two, three3 := facts.Made("i-1", "n", "n x z", "10.0.0.1 10.0.0.2 ::1"), facts.Made("i-2", "n", "x n y", "10.0.0.2 10.0.0.1 10.0.0.3"), facts.Made("n", "n", "n y x", "10.0.0.2")
	two.Group, three3.Group = "workers", "others"
	both := facts.Made("i-1", "n", "n x", "10.0.0.2")
	both.Group = "workers"
	deleting := three3
	deleting.Deleting = true
	gone := both
	gone.Deleting = true
	for _, tc := range []struct {
		name   string
		change func(three)
		want   policy.Fact[policy.Machine]
	}{
		{"all know", put(one, two, three3), policy.Know(both, "a and b and c", oldest)},
		{"nothing in common", put(facts.Made("i-1", "n", "x", "10.0.0.1"), facts.Made("i-1", "n", "y", "10.0.0.2"), three3), policy.Know(policy.Machine{ID: "i-1", NodeName: "n", Names: []string{}, Addresses: []netip.Addr{}, Group: "others"}, "a and b and c", oldest)},
		{"one does not", func(s three) { s.a.Put(one); s.c.Put(three3) }, policy.None[policy.Machine]("b", middle)},
		{"one does not and one cannot tell", func(s three) { s.a.Break("down"); s.c.Put(three3) }, policy.None[policy.Machine]("b", middle)},
		{"one cannot tell", func(s three) { put(one, two, three3)(s); s.b.Break("down") }, policy.DontKnow[policy.Machine]("b", "down")},
		{"one is finding out", func(s three) { put(one, two, three3)(s); s.b.Ask() }, policy.Fact[policy.Machine]{Source: "b", Why: "it is being looked up", Soon: true}},
		{"one says that it is being deleted", put(one, two, deleting), policy.Know(gone, "a and b and c", oldest)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := combine(t, facts.All)
			tc.change(s)
			if diff := cmp.Diff(tc.want, s.MachineOfNode("n"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if one.Names[2] != "z" || len(one.Addresses) != 3 {
				t.Error("the source's own machine was changed")
			}
		})
	}
}

func TestMachineByID(t *testing.T) {
	for _, tc := range []struct {
		name   string
		mode   facts.Mode
		change func(three)
		want   policy.Fact[policy.Machine]
	}{
		{"of the first source", facts.Any, func(s three) { s.a.Put(facts.Made("i-1", "n", "", "")) }, policy.Know(facts.Made("i-1", "n", "", ""), "a", newest)},
		{"of another", facts.Any, func(s three) { s.c.Put(facts.Made("i-1", "n", "", "")) }, policy.Know(facts.Made("i-1", "n", "", ""), "c", oldest)},
		{"of another, by which it is not called", facts.Any, func(s three) { s.a.Put(facts.Made("x", "n", "", "")); s.c.Put(facts.Made("i-1", "n", "", "")) }, policy.Know(facts.Made("x", "n", "", ""), "a", newest)},
		{"without a node name", facts.Any, func(s three) { s.a.Put(facts.Made("i-1", "", "", "")) }, policy.Know(facts.Made("i-1", "", "", ""), "a", newest)},
		{"of none", facts.Any, func(three) {}, policy.None[policy.Machine]("a and b and c", oldest)},
		{"perhaps", facts.Any, func(s three) { s.b.Break("down") }, policy.DontKnow[policy.Machine]("b", "down")},
		{"deleted elsewhere, where its name is gone", facts.Any, func(s three) {
			s.a.Put(facts.Made("i-1", "n", "", ""))
			s.b.Put(policy.Machine{ID: "i-1", Deleting: true})
		}, policy.Know(policy.Machine{ID: "i-1", NodeName: "n", Deleting: true}, "a", newest)},
		{"of all", facts.All, func(s three) {
			s.a.Put(facts.Made("i-1", "n", "", ""))
			s.b.Put(facts.Made("x", "n", "", ""))
			s.c.Put(facts.Made("y", "n", "", ""))
		}, policy.Know(facts.Made("i-1", "n", "", ""), "a and b and c", oldest)},
		{"not of all", facts.All, func(s three) { s.a.Put(facts.Made("i-1", "n", "", "")); s.b.Put(facts.Made("x", "n", "", "")) }, policy.None[policy.Machine]("c", oldest)},
		{"not of the first of all", facts.All, func(s three) { s.b.Put(facts.Made("i-1", "n", "", "")); s.c.Put(facts.Made("y", "n", "", "")) }, policy.None[policy.Machine]("a", newest)},
		{"perhaps of the first of all", facts.All, func(s three) { s.a.Break("down"); s.b.Put(facts.Made("i-1", "n", "", "")) }, policy.DontKnow[policy.Machine]("a", "down")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := combine(t, tc.mode)
			tc.change(s)
			if diff := cmp.Diff(tc.want, s.Machine("i-1"), cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwners(t *testing.T) {
	const ip = "10.0.0.1"
	owner := func(id, node string) policy.Machine { return facts.Made(id, node, "", ip) }
	dontKnow := func(source, why string, soon bool) policy.Fact[[]string] {
		return policy.Fact[[]string]{Source: source, Why: why, Soon: soon}
	}
	for _, tc := range []struct {
		name   string
		change func(three)
		byAny  policy.Fact[[]string]
		byAll  *policy.Fact[[]string] // if it is another
	}{
		{"nobody", func(three) {}, policy.Know[[]string](nil, "a and b and c", oldest), nil},
		{"one machine", func(s three) { s.a.Put(owner("i-1", "n")) }, policy.Know([]string{"i-1"}, "a and b and c", oldest), nil},
		{
			"one machine by several IDs", func(s three) { s.a.Put(owner("i-1", "n")); s.b.Put(owner("x", "n")); s.c.Put(owner("n", "n")) },
			policy.Know([]string{"i-1"}, "a and b and c", oldest), nil,
		},
		{
			"one machine that has it elsewhere only", func(s three) { s.a.Put(facts.Made("i-1", "n", "", "")); s.b.Put(owner("x", "n")) },
			policy.Know([]string{"i-1"}, "a and b and c", oldest), nil,
		},
		{"two machines", func(s three) { s.a.Put(owner("i-1", "n")); s.c.Put(owner("y", "m")) }, policy.Know([]string{"i-1", "y"}, "a and b and c", oldest), nil},
		{
			"two machines of one node name", func(s three) { s.b.Put(owner("x", "n")); s.b.Put(owner("y", "n")); s.c.Put(owner("n", "n")) },
			policy.Know([]string{"n", "x", "y"}, "a and b and c", oldest), nil,
		},
		{"a machine without a node name", func(s three) { s.b.Put(owner("x", "")) }, policy.Know([]string{"x"}, "a and b and c", oldest), nil},
		{"nobody, and one cannot tell", func(s three) { s.b.Break("down") }, dontKnow("b", "down", false), nil},
		{"nobody, and one is finding out", func(s three) { s.b.Ask() }, dontKnow("b", "it is being looked up", true), nil},
		{
			"one, and another source cannot tell", func(s three) { s.a.Put(owner("i-1", "n")); s.c.Break("down") },
			policy.Know([]string{"i-1"}, "a and b", middle), new(dontKnow("c", "down", false)),
		},
		{
			"one, and the first source cannot tell", func(s three) { s.b.Put(owner("x", "n")); s.a.Break("down") },
			policy.Know([]string{"x"}, "b and c", oldest), new(dontKnow("a", "down", false)),
		},
	} {
		for _, mode := range []facts.Mode{facts.Any, facts.All} {
			t.Run(tc.name+" by "+string(mode), func(t *testing.T) {
				s := combine(t, mode)
				tc.change(s)
				want := tc.byAny
				if mode == facts.All && tc.byAll != nil {
					want = *tc.byAll
				}
				if diff := cmp.Diff(want, s.Owners(ip)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestCombinedSyncsAndTellsHowItIs(t *testing.T) {
	for mode, want := range map[facts.Mode][4]bool{facts.Any: {false, true, true, true}, facts.All: {false, false, false, true}} {
		s := combine(t, mode)
		sources := []*factstest.Source{s.a, s.b, s.c}
		for _, f := range sources {
			f.Unsync(true)
		}
		for n := range 4 {
			if n > 0 {
				sources[n-1].Unsync(false)
			}
			if got := s.HasSynced(); got != want[n] {
				t.Errorf("%s with %d of 3: %v", mode, n, got)
			}
		}
		s.b.Break("down")
		s.c.Age(oldest.Add(-time.Minute))
		status := []facts.SourceStatus{{Name: "a", Synced: true}, {Name: "b", Synced: true, Problem: "down"}, {Name: "c", Synced: true, Age: time.Minute}}
		if diff := cmp.Diff(status, s.Status()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestCombinedRunsAllSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); combine(t, facts.Any).Run(ctx) }()
		synctest.Wait()
		select {
		case <-done:
			t.Error("it ended by itself")
		default:
		}
		cancel()
		<-done
	})
}

func TestCombineRefuses(t *testing.T) {
	for name, combine := range map[string]func() (*facts.Combined, error){
		"no sources":   func() (*facts.Combined, error) { return facts.Combine(facts.Any) },
		"another mode": func() (*facts.Combined, error) { return facts.Combine("some", &factstest.Source{}) },
		"two of one name": func() (*facts.Combined, error) {
			return facts.Combine(facts.Any, &factstest.Source{}, &factstest.Source{})
		},
		"the empty string": func() (*facts.Combined, error) { return facts.Combine("", &factstest.Source{}) },
	} {
		if _, err := combine(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
