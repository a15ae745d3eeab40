// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

func (w world) apply(s *Supervisor, specs ...component.Spec) {
	w.Helper()
	if err := s.Apply(w.Context(), specs); err != nil {
		w.Fatal(err)
	}
}

// Another limit of memory is in force under the process that runs.
func TestAnotherLimitByApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := &fakeGroup{}
	s, _ := w.runIn(group.find, quick(), w.server("a", ""))
	w.ready(s, "a")
	before := status(s, "a")
	for _, limit := range []int64{64 << 20, 32 << 20, 0} {
		w.apply(s, limited(w.server("a", ""), limit))
		eventually(t, "the limit", func() bool { return status(s, "a").Memory == runner.Memory{Limit: limit} })
	}
	eventually(t, "the kernel is told", func() bool {
		return slices.Equal(group.asked(), []string{
			"hold 67108864", fmt.Sprint("take ", before.PID), "hold 33554432", fmt.Sprint("take ", before.PID), fmt.Sprint("hold ", int64(math.MaxInt64)),
		})
	})
	if after := status(s, "a"); after.PID != before.PID || after.Restarts != 0 {
		t.Errorf("%+v, before %+v", after, before)
	}
}

// The grace of the list in force counts, for a process that was started with another one.
func TestAnotherGraceByApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long, short := w.server("a", "ignore"), w.server("a", "ignore")
	long.Grace, short.Grace = metav1.Duration{Duration: time.Hour}, metav1.Duration{Duration: time.Millisecond}
	s, _ := w.run(quick(), long)
	w.ready(s, "a")
	w.apply(s, short)
	w.apply(s)
	if found := w.find(); len(found) != 0 {
		t.Errorf("left: %+v", found)
	}
}

// A supervisor whose plane owns names ends the processes of that plane that no spec names, and no others.
func TestEndsWhatItsPlaneOwns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, spec := range []component.Spec{w.spec("own-kept", "wait"), w.spec("own-left", "wait"), w.spec("foreign", "wait")} {
		if err := Start(w.dir, spec); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "they run", func() bool { return len(w.find()) == 3 })
	own := Config{Owns: func(process string) bool { return strings.HasPrefix(process, "own-") }}
	s, _ := w.runAs(own, quick(), w.spec("own-kept", "wait"))
	w.ready(s, "own-kept")
	eventually(t, "the one that left ends", func() bool { return len(w.find()) == 2 })
	for _, p := range w.find() {
		if p.Name == "own-left" {
			t.Errorf("left: %+v", p)
		}
	}
}

// slowGroup has starts wait until it is opened.
type slowGroup struct {
	fakeGroup

	begun chan struct{} // gets an element for each start
	open  chan struct{}
}

func (g *slowGroup) Renew(limit int64) error {
	g.begun <- struct{}{}
	<-g.open
	return g.fakeGroup.Renew(limit)
}

// A component whose stop was given up is not started beside the process that its loop is about to start.
func TestAppliedAfterAStopThatWasGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := &slowGroup{begun: make(chan struct{}, 10), open: make(chan struct{})}
	open := sync.OnceFunc(func() { close(group.open) })
	spec := limited(w.spec("a", "wait"), 64<<20)
	s, _ := w.runIn(func(component.Spec) (MemoryGroup, error) { return group, nil }, quick(), spec)
	t.Cleanup(open)
	<-group.begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for range 2 {
		if stopped, err := s.Stop(ctx, 0, func(string) bool { return true }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it stopped %q, %v", stopped, err)
		}
	}
	w.apply(s, spec)
	select {
	case <-group.begun:
		t.Error("the loop of before has not ended, and another one starts a process")
	case <-time.After(100 * time.Millisecond):
	}
	open()
	w.ready(s, "a")
	if found := w.find(); len(found) != 1 {
		t.Errorf("%+v", found)
	}
}

// After its end a supervisor takes no list, and ends nothing.
func TestAppliedAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, stop := w.run(quick(), w.spec("a", "wait"))
	w.ready(s, "a")
	stop()
	if err := s.Apply(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("after the end: %v", err)
	}
	if found := w.find(); len(found) != 1 {
		t.Errorf("%+v", found)
	}
}
