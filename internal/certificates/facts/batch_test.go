// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/policy"
)

// service answers batches as told, and counts.
type service struct {
	mu       sync.Mutex
	machines map[Subject][]policy.Machine
	fail     error
	takes    time.Duration
	batches  []int
	at       []time.Time
	now      int
	most     int
}

func (s *service) ask(ctx context.Context, subjects []Subject) (map[Subject][]policy.Machine, error) {
	s.mu.Lock()
	s.batches, s.at = append(s.batches, len(subjects)), append(s.at, time.Now())
	s.now++
	s.most = max(s.most, s.now)
	takes, fail := s.takes, s.fail
	s.mu.Unlock()
	ok := sleep(ctx, takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if !ok {
		return nil, ctx.Err()
	}
	return s.machines, fail
}

// asked returns the sizes of the batches so far and when they were.
func (s *service) asked() (batches []int, at []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches), slices.Clone(s.at)
}

func (s *service) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func batch(t *testing.T, s *service) (*Batch, *ear) {
	t.Helper()
	e := &ear{}
	b, err := NewBatch(BatchConfig{Name: "service", Ask: s.ask, Valid: func(s Subject) bool { return s.Node != "never" && s.Name != "never" }, OnChange: e.hear, Logger: e.logger()})
	if err != nil {
		t.Fatal(err)
	}
	running(t, b)
	return b, e
}

func TestBatchAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := made("i-1", "n", "", "10.0.0.1"), made("i-2", "n", "", "10.0.0.1")
		s := &service{machines: map[Subject][]policy.Machine{{Node: "n"}: {one}, {ID: "i-1"}: {one}, {Node: "twins"}: {one, two}}}
		b, _ := batch(t, s)
		started := time.Now()
		for _, node := range []string{"n", "twins", "none", "never", ""} {
			b.MachineOfNode(node)
		}
		b.Machine("i-1")
		elapse(time.Second)
		at := started.Add(50 * time.Millisecond)
		for name, tc := range map[string]struct{ got, want policy.Fact[policy.Machine] }{
			"a node":          {b.MachineOfNode("n"), policy.Know(one, "service", at)},
			"a machine":       {b.Machine("i-1"), policy.Know(one, "service", at)},
			"two":             {b.MachineOfNode("twins"), policy.DontKnow[policy.Machine]("service", "machines i-1 and i-2 are both twins")},
			"none":            {b.MachineOfNode("none"), policy.None[policy.Machine]("service", at)},
			"what cannot be":  {b.MachineOfNode("never"), policy.None[policy.Machine]("service", time.Now())},
			"nothing":         {b.MachineOfNode(""), policy.None[policy.Machine]("service", time.Now())},
			"a machine of ''": {b.Machine(""), policy.None[policy.Machine]("service", time.Now())},
		} {
			if tc.got.State != tc.want.State || tc.got.Why != tc.want.Why || tc.got.Value.ID != tc.want.Value.ID || !tc.got.At.Equal(tc.want.At) || tc.got.Source != "service" {
				t.Errorf("%s: got %+v, want %+v", name, tc.got, tc.want)
			}
		}
		if batches, _ := s.asked(); !cmp.Equal(batches, []int{4}) {
			t.Errorf("asked in batches of %v", batches)
		}
		elapse(28 * time.Second)
		if batches, _ := s.asked(); !knows(b, "n") || len(batches) != 1 {
			t.Error("the answer was not kept")
		}
		elapse(1100 * time.Millisecond)
		soon(t, b.MachineOfNode("n"))
		elapse(time.Second)
		if batches, _ := s.asked(); !knows(b, "n") || len(batches) != 2 {
			t.Error("it was not asked again")
		}
	})
}

func TestManyMachinesAreFewBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{takes: time.Second}
		b, e := batch(t, s)
		for n := range 1000 {
			b.MachineOfNode(fmt.Sprint("n", n))
			b.MachineOfNode(fmt.Sprint("n", n))
		}
		elapse(time.Minute)
		batches, _ := s.asked()
		if !cmp.Equal(batches, []int{200, 200, 200, 200, 200}) || s.most != 2 {
			t.Errorf("asked in batches of %v, %d at once", batches, s.most)
		}
		told := map[string]int{}
		changes := e.heard()
		for _, c := range changes {
			for _, n := range c.Nodes {
				told[n]++
			}
		}
		if len(changes) != len(batches) || len(told) != 1000 || slices.Max(slices.Collect(maps.Values(told))) != 1 {
			t.Errorf("told of %d nodes in %d changes", len(told), len(changes))
		}
	})
}

func TestABatchThatFailsIsTriedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{fail: errors.New("RequestLimitExceeded")}
		b, e := batch(t, s)
		soon(t, b.MachineOfNode("n"))
		elapse(800 * time.Millisecond)
		if f := b.MachineOfNode("n"); f.State != policy.Unknown || f.Soon || f.Why != "RequestLimitExceeded" {
			t.Errorf("when it failed: %+v", f)
		}
		if got := b.Status(); got.Problem != "RequestLimitExceeded" || got.Age != 750*time.Millisecond || !got.Synced {
			t.Errorf("status %+v", got)
		}
		for n := range 600 {
			b.MachineOfNode(fmt.Sprint("n", n%30)) // by many
			elapse(time.Second)
		}
		var pauses []time.Duration
		_, at := s.asked()
		for i := 1; i < len(at); i++ {
			pauses = append(pauses, at[i].Sub(at[i-1]))
		}
		if len(pauses) < 10 || pauses[0] != 200*time.Millisecond || pauses[1] != 400*time.Millisecond || len(pauses) > 50 {
			t.Errorf("pauses %v", pauses)
		}
		if long := slices.Max(pauses); long < mostPause || long > mostPause+6*time.Second {
			t.Errorf("the longest pause is %s", long)
		}
		if n := e.logged("inventory source broken"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		e.heard()
		s.set(func() {
			s.fail, s.machines = nil, map[Subject][]policy.Machine{{Node: "n0"}: {made("i-0", "n0", "", "")}}
		})
		b.MachineOfNode("n0")
		elapse(2 * mostPause)
		if !slices.ContainsFunc(e.heard(), func(c Change) bool { return c.All }) {
			t.Error("that it works again is not told to those who were told that it failed")
		}
		b.MachineOfNode("n0")
		elapse(time.Second)
		if !knows(b, "n0") || b.Status() != (SourceStatus{Name: "service", Synced: true}) {
			t.Errorf("when it works again: %+v", b.MachineOfNode("n0"))
		}
		_, before := s.asked()
		b.MachineOfNode("another")
		elapse(51 * time.Millisecond)
		if _, at := s.asked(); len(at) != len(before)+1 {
			t.Error("it still pauses")
		}
		s.set(func() { s.fail = errors.New("again") })
		b.MachineOfNode("a third")
		elapse(time.Second)
		_, at = s.asked()
		if pause := at[len(at)-2].Sub(at[len(at)-3]); len(at) != len(before)+4 || pause != firstPause {
			t.Errorf("after it worked, the first pause is %s; asked %d times", pause, len(at)-len(before)-1)
		}
	})
}

func TestAFailureIsTriedAgainBeforeItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{fail: errors.New("once"), machines: map[Subject][]policy.Machine{{Node: "n"}: {made("i-1", "n", "", "")}}}
		b, _ := batch(t, s)
		b.MachineOfNode("n")
		elapse(100 * time.Millisecond)
		s.set(func() { s.fail = nil })
		soon(t, b.MachineOfNode("n"))
		elapse(200 * time.Millisecond)
		if !knows(b, "n") {
			t.Errorf("got %+v", b.MachineOfNode("n"))
		}
	})
}

func TestABatchThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{takes: time.Hour}
		b, _ := batch(t, s)
		b.MachineOfNode("n")
		elapse(32 * time.Second)
		if f := b.MachineOfNode("n"); f.State != policy.Unknown || f.Soon || !strings.HasPrefix(f.Why, "no answer within 10s") {
			t.Errorf("got %+v", f)
		}
	})
}

func TestNewBatchRefuses(t *testing.T) {
	ask, valid := (&service{}).ask, func(Subject) bool { return true }
	tell, logger := func(Change) {}, slog.New(slog.DiscardHandler)
	for missing, c := range map[string]BatchConfig{
		"a name": {Ask: ask, Valid: valid, OnChange: tell, Logger: logger}, "what to ask": {Name: "n", Valid: valid, OnChange: tell, Logger: logger},
		"what is valid": {Name: "n", Ask: ask, OnChange: tell, Logger: logger}, "somebody to tell": {Name: "n", Ask: ask, Valid: valid, Logger: logger},
		"a logger": {Name: "n", Ask: ask, Valid: valid, OnChange: tell},
	} {
		if _, err := NewBatch(c); err == nil {
			t.Errorf("without %s: accepted", missing)
		}
	}
}
