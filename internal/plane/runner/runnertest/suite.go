// SPDX-License-Identifier: Apache-2.0

package runnertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

// World is a place in which a runner under test works.
type World struct {
	// Begin begins a runner, and returns what ends the runner: the components go on.
	Begin func(t *testing.T) (r runner.Runner, end func())
	// Spec is a component that serves, unless it is broken.
	Spec func(name string, after ...string) component.Spec
	// Break has a component not serve from now on, Mend has it serve again, and Kill ends it.
	Break, Mend, Kill func(name string)
	// Replace replaces the file of the program of a component.
	Replace func(name string)
	// Ends lists the names of components that a runner ended, in order.
	Ends func() []string
}

// Run runs the suite, each test in a world of its own.
func Run(t *testing.T, world func(t *testing.T) World) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, World){
		"order": order, "equal": equal, "changed": changed, "less": less, "refused": refused, "waiting": waiting,
		"killed": killed, "successor": successor, "stop": stop, "given up": givenUp, "list": list,
		"program": program,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, world(t))
		})
	}
}

func apply(t *testing.T, r runner.Runner, specs ...component.Spec) {
	t.Helper()
	if err := r.Apply(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
}

func ready(t *testing.T, r runner.Runner, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.WaitReady(ctx, names...); err != nil {
		t.Fatal(err)
	}
}

// is the status of one component; empty if it has none.
func is(r runner.Runner, name string) runner.Status {
	statuses := r.Status()
	if i := slices.IndexFunc(statuses, func(s runner.Status) bool { return s.Name == name }); i >= 0 {
		return statuses[i]
	}
	return runner.Status{}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// runs checks which components run.
func runs(t *testing.T, r runner.Runner, names ...string) {
	t.Helper()
	running, err := r.Running()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range running {
		got = append(got, c.Process)
		if c.Spec == "" || c.Started.IsZero() {
			t.Errorf("runs as %+v", c)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, names) {
		t.Errorf("%v run, want %v", got, names)
	}
}

// A component starts when what it needs is ready, and its status says so.
func order(t *testing.T, w World) {
	r, _ := w.Begin(t)
	w.Break("a")
	apply(t, r, w.Spec("c", "a", "b"), w.Spec("b", "a"), w.Spec("a"))
	eventually(t, "a is asked", func() bool { return is(r, "a").State == runner.Starting && is(r, "a").Message != "" })
	runs(t, r, "a")
	eventually(t, "b says why", func() bool { return is(r, "b").Message != "" })
	if got := is(r, "b"); got.State != runner.Waiting || !strings.Contains(got.Message, "a") || got.PID != 0 {
		t.Errorf("b is %+v", got)
	}
	w.Mend("a")
	ready(t, r, "a", "b", "c")
	runs(t, r, "a", "b", "c")
	if got := r.Status(); len(got) != 3 || got[0].Name != "c" || got[2].Name != "a" {
		t.Errorf("not in the order of the list: %+v", got)
	}
}

// A list of equal specs restarts nothing. Memory, grace and order of a component change while it runs.
func equal(t *testing.T, w World) {
	r, _ := w.Begin(t)
	apply(t, r, w.Spec("a"), w.Spec("b", "a"))
	ready(t, r, "a", "b")
	before := is(r, "b")
	other := w.Spec("b")
	other.Memory, other.Grace = 1<<30, metav1.Duration{Duration: 3 * time.Second}
	apply(t, r, w.Spec("c"), other, w.Spec("a", "b"))
	ready(t, r, "a", "b", "c")
	apply(t, r, other) // which does not need a any more
	runs(t, r, "b")
	if after := is(r, "b"); after.PID != before.PID || after.Restarts != 0 || after.State != runner.Ready {
		t.Errorf("%+v, before %+v", after, before)
	}
}

// Another spec replaces the component that runs, and no other.
func changed(t *testing.T, w World) {
	r, _ := w.Begin(t)
	apply(t, r, w.Spec("a"), w.Spec("b", "a"))
	ready(t, r, "a", "b")
	a, b := is(r, "a"), is(r, "b")
	other := w.Spec("a")
	other.Args = append(other.Args, "--other")
	apply(t, r, other, w.Spec("b", "a"))
	eventually(t, "another process", func() bool { now := is(r, "a"); return now.State == runner.Ready && now.PID != a.PID })
	runs(t, r, "a", "b")
	if after := is(r, "b"); after.PID != b.PID || after.Restarts != 0 {
		t.Errorf("b is %+v, before %+v", after, b)
	}
	running, _ := r.Running()
	if !slices.ContainsFunc(running, func(c runner.Running) bool { return c.Process == "a" && c.Spec == other.Hash() }) {
		t.Errorf("it runs with another spec: %+v", running)
	}
}

// A component that left the list ends before the components that it needed, and has ended when Apply returns.
func less(t *testing.T, w World) {
	r, _ := w.Begin(t)
	apply(t, r, w.Spec("a"), w.Spec("b", "a"), w.Spec("c", "b"), w.Spec("d", "c"))
	ready(t, r, "a", "b", "c", "d")
	apply(t, r, w.Spec("a"))
	runs(t, r, "a")
	if got, want := w.Ends(), []string{"d", "c", "b"}; !slices.Equal(got, want) {
		t.Errorf("they ended as %v, want %v", got, want)
	}
	if got := r.Status(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	apply(t, r, w.Spec("a"), w.Spec("b", "a"))
	ready(t, r, "b")
}

// A list that cannot run changes nothing.
func refused(t *testing.T, w World) {
	r, _ := w.Begin(t)
	apply(t, r, w.Spec("a"))
	ready(t, r, "a")
	for _, specs := range [][]component.Spec{{w.Spec("b", "missing")}, {w.Spec("b", "c"), w.Spec("c", "b")}, {w.Spec("a"), w.Spec("a")}} {
		if err := r.Apply(t.Context(), specs); err == nil {
			t.Errorf("%+v was taken", specs)
		}
	}
	runs(t, r, "a")
	ready(t, r, "a")
}

// A caller that gives up learns what it waited for.
func waiting(t *testing.T, w World) {
	r, _ := w.Begin(t)
	w.Break("a")
	apply(t, r, w.Spec("a"), w.Spec("b", "a"))
	eventually(t, "a is asked", func() bool { return is(r, "a").Message != "" && is(r, "b").Message != "" })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := r.WaitReady(ctx, "b", "a", "c")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it gave up with %v", err)
	}
	for _, part := range []string{"b is Waiting: for [a]", "a is Starting: " + is(r, "a").Message, "c is not in the list"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if err := r.WaitReady(ctx); err != nil {
		t.Errorf("nothing to wait for: %v", err)
	}
	w.Mend("a")
	ready(t, r, "a", "b")
	w.Break("a")
	eventually(t, "it does not answer", func() bool { now := is(r, "a"); return now.State == runner.Unready && now.Message != "" })
	if got := is(r, "b"); got.State != runner.Ready {
		t.Errorf("b is %+v", got)
	}
}

// A component that ends is started again.
func killed(t *testing.T, w World) {
	r, _ := w.Begin(t)
	apply(t, r, w.Spec("a"))
	ready(t, r, "a")
	before := is(r, "a").PID
	w.Kill("a")
	eventually(t, "another one", func() bool {
		now := is(r, "a")
		return now.State == runner.Ready && now.PID != before && now.Restarts == 1
	})
}

// Components outlive their runner, and the next one takes them over.
func successor(t *testing.T, w World) {
	first, end := w.Begin(t)
	apply(t, first, w.Spec("a"), w.Spec("b", "a"))
	ready(t, first, "a", "b")
	before := is(first, "a").PID
	end()
	runs(t, first, "a", "b")
	second, _ := w.Begin(t)
	runs(t, second, "a", "b")
	apply(t, second, w.Spec("a"))
	ready(t, second, "a")
	if after := is(second, "a"); after.PID != before || after.Restarts != 0 {
		t.Errorf("%+v, before it was %d", after, before)
	}
}

// Stop ends what is chosen, also what an earlier runner started, and has it stay ended.
func stop(t *testing.T, w World) {
	first, end := w.Begin(t)
	apply(t, first, w.Spec("a"), w.Spec("b"))
	ready(t, first, "a", "b")
	end()
	r, _ := w.Begin(t)
	apply(t, r, w.Spec("a"), w.Spec("c"))
	ready(t, r, "a", "c")
	stopped, err := r.Stop(t.Context(), time.Second, func(process string) bool { return process != "a" })
	slices.Sort(stopped)
	if err != nil || !slices.Equal(stopped, []string{"b", "c"}) {
		t.Errorf("stopped %v, %v", stopped, err)
	}
	runs(t, r, "a")
	if got := r.Status(); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("%+v", got)
	}
	if stopped, err := r.Stop(t.Context(), time.Second, func(process string) bool { return process != "a" }); err != nil || len(stopped) != 0 {
		t.Errorf("stopped once more: %v, %v", stopped, err)
	}
	apply(t, r, w.Spec("a"), w.Spec("c"))
	ready(t, r, "c")
}

// A Stop that is given up is carried on by the next list.
func givenUp(t *testing.T, w World) {
	r, _ := w.Begin(t)
	apply(t, r, w.Spec("a"), w.Spec("b"))
	ready(t, r, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = r.Stop(ctx, time.Second, func(process string) bool { return process == "b" })
	if got := r.Status(); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("%+v", got)
	}
	apply(t, r, w.Spec("a"))
	runs(t, r, "a")
	apply(t, r, w.Spec("a"), w.Spec("b"))
	ready(t, r, "a", "b")
	runs(t, r, "a", "b")
}

// A list changes by one component at a time.
func list(t *testing.T, w World) {
	r, _ := w.Begin(t)
	apply(t, r, w.Spec("a"))
	l := runner.NewList(r, []component.Spec{w.Spec("a")})
	for range 2 { // the second time it is there
		if err := l.Add(w.Spec("b", "a")); err != nil {
			t.Fatal(err)
		}
	}
	ready(t, r, "a", "b")
	other := w.Spec("b", "a")
	other.Args = []string{"other"}
	if err := l.Add(other); err == nil || !strings.Contains(err.Error(), "another spec") {
		t.Errorf("another spec of the same name: %v", err)
	}
	if err := l.Add(w.Spec("c", "missing")); err == nil || !strings.Contains(err.Error(), "waits for") {
		t.Errorf("a spec that waits for a missing one: %v", err)
	}
	if err := l.Remove(t.Context(), w.Spec("a")); err == nil || !strings.Contains(err.Error(), "b needs it") {
		t.Errorf("removing what is needed: %v", err)
	}
	for range 2 { // the second time it is gone
		if err := l.Remove(t.Context(), w.Spec("b")); err != nil {
			t.Fatal(err)
		}
		runs(t, r, "a")
	}
	if err := l.Add(w.Spec("c")); err != nil {
		t.Fatal(err)
	}
	ready(t, r, "c")
	runs(t, r, "a", "c")
}

// A component whose program was replaced is started again by the next runner, unless it keeps its program: then once it
// is wanted without that.
func program(t *testing.T, w World) {
	first, end := w.Begin(t)
	keeps := w.Spec("a")
	keeps.KeepsProgram = true
	apply(t, first, keeps, w.Spec("b"), w.Spec("c"))
	ready(t, first, "a", "b", "c")
	w.Replace("a")
	w.Replace("b")
	outdated := func(r runner.Runner) (names string) {
		for _, spec := range []component.Spec{w.Spec("a"), w.Spec("b"), w.Spec("c"), w.Spec("missing")} {
			if is, err := r.Outdated(spec); err != nil {
				t.Error(err)
			} else if is {
				names += spec.Name
			}
		}
		return names
	}
	if got := outdated(first); got != "ab" {
		t.Errorf("of replaced programs run %q", got)
	}
	before := []int{is(first, "a").PID, is(first, "b").PID, is(first, "c").PID}
	end()
	second, _ := w.Begin(t)
	apply(t, second, keeps, w.Spec("b"), w.Spec("c"))
	ready(t, second, "a", "b", "c")
	if after := []int{is(second, "a").PID, is(second, "b").PID, is(second, "c").PID}; after[0] != before[0] || after[1] == before[1] || after[2] != before[2] {
		t.Errorf("processes %v, before %v", after, before)
	}
	if got := outdated(second); got != "a" {
		t.Errorf("of replaced programs run %q", got)
	}
	b, c := is(second, "b"), is(second, "c")
	apply(t, second, w.Spec("a"), w.Spec("b"), w.Spec("c"))
	eventually(t, "a is started again", func() bool {
		now := is(second, "a")
		return now.State == runner.Ready && now.PID != before[0] && now.Restarts == 0
	})
	if is(second, "b").PID != b.PID || is(second, "c").PID != c.PID || outdated(second) != "" {
		t.Errorf("%+v, before %+v and %+v; of replaced programs run %q", second.Status(), b, c, outdated(second))
	}
}
