// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

// Processes come and go while others run.
func TestAddAndRemove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, stop := w.run(quick(), w.server("first", ""))
	w.ready(s, "first")
	l := runner.NewList(s, []component.Spec{w.server("first", "")})
	first := status(s, "first").PID
	second := w.server("second", "", "first")
	for range 2 { // the second time it is there
		if err := l.Add(second); err != nil {
			t.Fatal(err)
		}
	}
	w.ready(s, "first", "second")
	if got := len(w.find()); got != 2 {
		t.Fatalf("%d processes run", got)
	}
	kill(t, status(s, "second").PID, 9)
	eventually(t, "it was started again", func() bool { return status(s, "second").Restarts > 0 })
	w.ready(s, "second")

	changed := second
	changed.Args = []string{"other"}
	if err := l.Add(changed); err == nil || !strings.Contains(err.Error(), "another spec") {
		t.Errorf("another spec of the same name: %v", err)
	}
	if err := l.Add(w.spec("third", "wait", "missing")); err == nil || !strings.Contains(err.Error(), "waits for") {
		t.Errorf("one that waits for what is not there: %v", err)
	}
	if err := l.Remove(t.Context(), component.Spec{Name: "first"}); err == nil || !strings.Contains(err.Error(), "second needs it") {
		t.Errorf("removing what is needed: %v", err)
	}
	for range 2 { // the second time it is gone
		if err := l.Remove(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if found := w.find(); len(found) != 1 || found[0].PID != first || status(s, "second") != (runner.Status{}) {
			t.Fatalf("left: %+v, %+v", found, s.Status())
		}
	}
	if err := l.Add(second); err != nil {
		t.Fatal(err)
	}
	w.ready(s, "second")
	stop()
	if got := len(w.find()); got != 2 {
		t.Errorf("%d processes run without their supervisor", got)
	}
	if err := l.Add(w.spec("late", "wait")); !errors.Is(err, errEnded) {
		t.Errorf("adding after the end: %v", err)
	}
}

// A process that is removed while it starts again and again is not there afterwards.
func TestRemoveWhatKeepsEnding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.run(quick(), w.server("first", ""))
	w.ready(s, "first")
	l := runner.NewList(s, []component.Spec{w.server("first", "")})
	for range 20 {
		spec := w.spec("short", "exit")
		if err := l.Add(spec); err != nil {
			t.Fatal(err)
		}
		if err := l.Remove(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if found := w.find(); len(found) != 1 {
			t.Fatalf("left: %+v", found)
		}
	}
}

// What another supervisor has started is ended, too.
func TestRemoveWithoutASupervisor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := w.server("alone", "wait")
	if err := Start(w.dir, spec); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs", func() bool { return len(w.find()) == 1 })
	s, err := New(Config{State: w.dir, Log: slog.New(slog.DiscardHandler), StopGrace: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.NewList(s, nil).Remove(context.WithoutCancel(t.Context()), spec); err != nil {
		t.Fatal(err)
	}
	if found := w.find(); len(found) != 0 {
		t.Errorf("left: %+v", found)
	}
}

// A process that hands its work over goes on beside the next one, which is the one that is asked and taken over.
func TestHandsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	front := w.server("front", "")
	front.HandsOver = true
	s, stop := w.run(quick(), front)
	w.ready(s, "front")
	first := status(s, "front").PID
	next := front
	next.Args = []string{"other"}
	w.apply(s, next)
	eventually(t, "the next one is ready", func() bool {
		got := status(s, "front")
		return got.State == runner.Ready && got.PID != first
	})
	second := status(s, "front").PID
	if found := w.find(); len(found) != 2 || gone(first) {
		t.Fatalf("running: %+v", found)
	}
	stop()
	s, _ = w.run(quick(), next)
	w.ready(s, "front")
	if got := status(s, "front").PID; got != second {
		t.Errorf("process %d was taken over, and %d is the next one", got, second)
	}
	kill(t, first, 9)
	eventually(t, "the first one is gone", func() bool { return gone(first) })
	if got := status(s, "front"); got.PID != second || got.Restarts != 0 {
		t.Errorf("its end was taken for the next one's: %+v", got)
	}
	kill(t, second, 9)
	eventually(t, "it is started again", func() bool { got := status(s, "front"); return got.Restarts == 1 && got.State == runner.Ready })
	w.apply(s)
	if found := w.find(); len(found) != 0 {
		t.Errorf("left: %+v", found)
	}
}

// A spec that is wanted again gets a process of its own: the one from before has handed its work over.
func TestHandsOverAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	front := w.server("front", "")
	front.HandsOver = true
	s, _ := w.run(quick(), front)
	w.ready(s, "front")
	first := status(s, "front").PID
	next := front
	next.Args = []string{"other"}
	var second int
	for n, spec := range []component.Spec{next, front} {
		w.apply(s, spec)
		eventually(t, "another one is ready", func() bool {
			got := status(s, "front")
			return got.State == runner.Ready && got.PID != first && got.PID != second
		})
		second = status(s, "front").PID
		if found := w.find(); len(found) != n+2 {
			t.Fatalf("running: %+v", found)
		}
	}
}

// A next process that never takes over is not ready because the one before answers at the same socket. It is started
// again, and the one before is left as it is.
func TestHandsOverToNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	front := w.server("front", "")
	front.HandsOver = true
	timing := quick()
	timing.hungAfter = 500 * time.Millisecond
	s, _ := w.run(timing, front)
	w.ready(s, "front")
	first := status(s, "front").PID
	next := front
	next.Env = append(slices.Clone(next.Env), envFake+"=wait") // the last one counts
	w.apply(s, next)
	eventually(t, "the next one is started again", func() bool {
		got := status(s, "front")
		if got.State == runner.Ready {
			t.Fatalf("it does not serve: %+v", got)
		}
		return got.Restarts > 1
	})
	if gone(first) {
		t.Error("the one before was ended")
	}
	w.apply(s, front)
	w.ready(s, "front")
}
