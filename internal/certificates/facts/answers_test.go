// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/certificates/policy"
)

func answers(most int) (*Answers, *ear) {
	e := &ear{}
	return NewAnswers(AnswersConfig{Name: "oracle", Most: most, OnChange: e.hear, Now: time.Now}), e
}

func nodeOf(name string) Subject { return Subject{Node: name} }

func soon(t *testing.T, f policy.Fact[policy.Machine]) {
	t.Helper()
	if f.State != policy.Unknown || !f.Soon {
		t.Errorf("got %+v, want unknown and soon", f)
	}
}

func TestAnswersAreLookedUpOnceAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, e := answers(0)
		soon(t, a.Get(nodeOf("n")))
		soon(t, a.Get(nodeOf("n")))
		if !a.Wait(t.Context()) || !cmp.Equal(a.Take(10), []Subject{nodeOf("n")}) {
			t.Fatal("not to be looked up once")
		}
		soon(t, a.Get(nodeOf("n")))
		if got := a.Take(10); len(got) > 0 {
			t.Errorf("looked up again while it is: %v", got)
		}
		known := policy.Know(made("i-1", "n", "x", "10.0.0.1"), "oracle", time.Now())
		a.Put(answerOf(nodeOf("n"), known, 30*time.Second))
		want := []Change{{Machines: []string{"i-1"}, Nodes: []string{"n"}, Names: []string{"10.0.0.1", "n", "x"}}}
		if diff := cmp.Diff(want, e.heard()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		elapse(30*time.Second - 1)
		if f := a.Get(nodeOf("n")); f.State != policy.Known || !f.At.Equal(known.At) || len(a.Take(1)) > 0 {
			t.Errorf("it was not kept: %+v", f)
		}
		if f := a.Seen("10.0.0.1"); !cmp.Equal(ids(f.Value), []string{"i-1"}) || !f.At.Equal(known.At) {
			t.Errorf("owners %+v", f)
		}
		elapse(1)
		if f := a.Seen("10.0.0.1"); f.State != policy.Known || len(f.Value) > 0 {
			t.Errorf("owners by an old answer: %+v", f)
		}
		soon(t, a.Get(nodeOf("n")))
		a.Take(1)
		a.Put(answerOf(nodeOf("n"), known, time.Minute))
		if diff := cmp.Diff(want, e.heard()); diff != "" {
			t.Errorf("who waits is not told that all is as before (-want +got):\n%s", diff)
		}
	})
}

func TestAnOldNoIsGoodWhileItIsLookedUpAgain(t *testing.T) {
	for name, no := range map[string]policy.Fact[policy.Machine]{
		"absent": policy.None[policy.Machine]("oracle", time.Unix(1, 0)), "unknown": policy.DontKnow[policy.Machine]("oracle", "it is silent"),
	} {
		synctest.Test(t, func(t *testing.T) {
			a, e := answers(0)
			a.Get(nodeOf("n"))
			a.Take(1)
			a.Put(answerOf(nodeOf("n"), no, 10*time.Second))
			e.heard()
			elapse(11 * time.Second)
			if diff := cmp.Diff(no, a.Get(nodeOf("n")), cmpopts.EquateComparable(time.Time{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if len(a.Take(1)) != 1 {
				t.Errorf("%s: not looked up again", name)
			}
			a.Put(answerOf(nodeOf("n"), no, 10*time.Second))
			if c := e.heard(); len(c) > 0 {
				t.Errorf("%s: told that nothing changed: %+v", name, c)
			}
			elapse(11 * time.Second)
			a.Get(nodeOf("n"))
			a.Take(1)
			a.Put(answerOf(nodeOf("n"), policy.Know(made("i", "n", "", ""), "oracle", time.Now()), time.Second))
			if c := e.heard(); !cmp.Equal(c, []Change{{Machines: []string{"i"}, Nodes: []string{"n"}, Names: []string{"n"}}}) {
				t.Errorf("%s: told %+v", name, c)
			}
			elapse(time.Second)
			a.Get(nodeOf("n"))
			a.Take(1)
			a.Put(answerOf(nodeOf("n"), no, time.Second))
			elapse(oldNo + 1)
			soon(t, a.Get(nodeOf("n")))
		})
	}
}

func TestTheLatestIsLookedUpFirst(t *testing.T) {
	a, _ := answers(0)
	for _, n := range []string{"1", "2", "3"} {
		a.Get(nodeOf(n))
	}
	if got := a.Take(2); !cmp.Equal(got, []Subject{nodeOf("3"), nodeOf("2")}) {
		t.Errorf("got %v", got)
	}
	if !a.Wait(t.Context()) {
		t.Error("that there is more is not told")
	}
	if got := a.Take(3); !cmp.Equal(got, []Subject{nodeOf("1")}) {
		t.Errorf("got %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	select {
	case <-a.ready: // left over
	default:
	}
	if a.Wait(ctx) {
		t.Error("waited for nothing, and got it")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	a, _ := answers(3)
	for n := range 100 {
		a.Get(nodeOf(fmt.Sprint(n)))
	}
	if q := a.machines; len(a.entries) != 3 || q.used.Len() != 3 || q.waiting.Len() != 3 {
		t.Errorf("%d entries, %d in use, %d waiting", len(a.entries), q.used.Len(), q.waiting.Len())
	}
	if got := a.Take(9); !cmp.Equal(got, []Subject{nodeOf("99"), nodeOf("98"), nodeOf("97")}) {
		t.Errorf("got %v", got)
	}
	if f := a.Get(nodeOf("x")); f.State != policy.Unknown || f.Soon {
		t.Errorf("while all are under way: %+v", f)
	}
	for n := range 3 {
		a.Put(answerOf(nodeOf(fmt.Sprint(97+n)), policy.Know(made(fmt.Sprint(n), "", "shared", ""), "oracle", time.Now()), time.Hour))
	}
	if f := a.Seen("shared"); len(f.Value) != 3 {
		t.Errorf("owners %+v", f)
	}
	a.Get(nodeOf("97")) // so that 98 was asked for longest ago
	a.Get(nodeOf("x"))
	if f := a.Seen("shared"); !cmp.Equal(ids(f.Value), []string{"0", "2"}) {
		t.Errorf("owners %+v", f)
	}
	a.Put(answerOf(nodeOf("98"), policy.Know(made("late", "", "shared", ""), "oracle", time.Now()), time.Hour))
	for n := range 10 {
		a.Get(nodeOf(fmt.Sprint("y", n)))
	}
	if len(a.seen) > 0 {
		t.Errorf("owners that nobody has: %v", a.seen)
	}
}

func made(id, node, names, addresses string) policy.Machine {
	m := policy.Machine{ID: id, NodeName: node, Names: strings.Fields(names)}
	for a := range strings.FieldsSeq(addresses) {
		m.Addresses = append(m.Addresses, netip.MustParseAddr(a))
	}
	return m
}
