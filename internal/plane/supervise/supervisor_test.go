// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.touch("first")
	s, _ := w.run(quick(), w.server("third", "", "first", "second"), w.server("second", "", "first"), w.server("first", ""))
	eventually(t, "first runs and is asked", func() bool { return strings.Contains(status(s, "first").Message, "data failed") })
	if found := w.find(); len(found) != 1 || found[0].Name != "first" {
		t.Errorf("%+v started before what it needs is ready", found)
	}
	if got := status(s, "second"); got.State != runner.Waiting || !strings.Contains(got.Message, "first") {
		t.Errorf("second is %+v", got)
	}
	w.remove("first")
	w.ready(s, "third", "second", "first")
	var names []string
	for _, p := range w.find() {
		names = append(names, p.Name)
	}
	if want := []string{"first", "second", "third"}; !slices.Equal(names, want) {
		t.Errorf("they started as %v, want %v", names, want)
	}
	for _, got := range s.Status() {
		if got.State != runner.Ready || got.Restarts != 0 || got.Message != "" || got.PID == 0 {
			t.Errorf("%+v", got)
		}
	}
}

func TestImpossibleOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := New(Config{State: w.dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for what, specs := range map[string][]component.Spec{
		"missing": {w.spec("a", "wait", "b")},
		"itself":  {w.spec("a", "wait", "a")},
		"circle":  {w.spec("a", "wait", "b"), w.spec("b", "wait", "c"), w.spec("c", "wait", "a")},
	} {
		if err := s.Apply(t.Context(), specs); err == nil || !strings.Contains(err.Error(), "a waits for") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := New(Config{State: w.dir}); err == nil {
		t.Error("no logger, no error")
	}
}

func TestReadinessOverTCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	spec := w.spec("tcp", "serve")
	spec.Env = append(spec.Env, envListen+"=tcp "+address)
	spec.Probe = &component.Probe{URL: "http://" + address + "/readyz"}
	s, _ := w.run(quick(), spec)
	w.ready(s, "tcp")
}

func TestRestartsWithGrowingPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.run(quick(), w.spec("short", "note exit"))
	starts := func() []string {
		raw, _ := os.ReadFile(w.file("short"))
		return strings.Fields(string(raw))
	}
	eventually(t, "six starts", func() bool { return len(starts()) >= 6 })
	last, pause := int64(0), quick().backoffMin
	for i, text := range starts()[:6] {
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if got := time.Duration(at-last+1) * time.Millisecond; got < pause {
				t.Errorf("start %d came after %s, want at least %s", i, got, pause)
			}
			pause = min(2*pause, quick().backoffMax)
		}
		last = at
	}
	eventually(t, "backoff", func() bool {
		got := status(s, "short")
		return got.State == runner.Backoff && got.PID == 0 && got.Restarts >= 5 && strings.Contains(got.Message, "it ended; see its log "+w.dir.Log("short"))
	})
}

func TestPauseStartsOverForTheStable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	timing := quick()
	timing.stableAfter, timing.backoffMin, timing.backoffMax = 0, 10*time.Millisecond, time.Hour
	s, _ := w.run(timing, w.spec("stable", "exit"))
	eventually(t, "20 restarts, which would take hours if the pause grew", func() bool { return status(s, "stable").Restarts >= 20 })
}

func TestKilledIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.run(quick(), w.server("a", ""))
	w.ready(s, "a")
	before := status(s, "a").PID
	kill(t, before, syscall.SIGKILL)
	eventually(t, "another process", func() bool {
		got := status(s, "a")
		return got.State == runner.Ready && got.PID != before && got.Restarts == 1
	})
}

func TestMissingProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := w.spec("a", "wait")
	spec.Path = "/nowhere/a"
	s, _ := w.run(quick(), spec)
	eventually(t, "a clear message", func() bool {
		got := status(s, "a")
		return got.State == runner.Backoff && strings.Contains(got.Message, "finding program of a") && strings.Contains(got.Message, "/nowhere")
	})
}

// adopted runs a spec, then lets a second supervisor run another, and tells the process of each.
func (w world) adopted(first component.Spec, between func(), second component.Spec) (before, after int) {
	w.Helper()
	s, stop := w.run(quick(), first)
	w.ready(s, first.Name)
	before = status(s, first.Name).PID
	stop()
	if gone(before) {
		w.Fatal("it ended with its supervisor")
	}
	between()
	s, _ = w.run(quick(), second)
	w.ready(s, second.Name)
	got := status(s, second.Name)
	if got.Restarts != 0 {
		w.Errorf("%d restarts", got.Restarts)
	}
	if n := len(w.find()); n != 1 {
		w.Errorf("%d processes run", n)
	}
	return before, got.PID
}

func TestAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := w.server("a", "")
	if before, after := w.adopted(spec, func() {}, spec); before != after {
		t.Error("a healthy process was restarted")
	}
}

func TestAdoptedWhateverItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.touch("never")
	s, stop := w.run(quick(), w.spec("a", "wait"))
	w.ready(s, "a")
	before := status(s, "a").PID
	stop()
	s, _ = w.run(quick(), w.server("never", ""), w.spec("a", "wait", "never"))
	w.ready(s, "a")
	if after := status(s, "a").PID; before != after {
		t.Error("a healthy process was restarted")
	}
}

func TestAdoptedThroughALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := filepath.Join(string(w.dir), "link")
	if err := os.Symlink(w.program, link); err != nil {
		t.Fatal(err)
	}
	spec := w.server("a", "")
	spec.Path = link
	if before, after := w.adopted(spec, func() {}, spec); before != after {
		t.Error("a healthy process was restarted")
	}
}

func TestReplacedWhenItsSpecChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.server("a", ""), w.server("a", "")
	second.Args = []string{"--more"}
	before, after := w.adopted(first, func() {}, second)
	if before == after || !gone(before) {
		t.Error("a process with another spec goes on")
	}
}

func TestReplacedWhenMusterMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	moved := w.program + ".moved"
	copyFile(t, w.program, moved)
	first, second := w.server("a", ""), w.server("a", "")
	second.Path = moved
	before, after := w.adopted(first, func() {}, second)
	if before == after || !gone(before) {
		t.Error("a process of a program elsewhere goes on")
	}
}

func TestReplacedWhenItsProgramWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := w.server("a", "")
	spec.Path = filepath.Join(string(w.dir), "program")
	copyFile(t, w.program, spec.Path)
	before, after := w.adopted(spec, func() {
		if err := os.Remove(spec.Path); err != nil {
			t.Fatal(err)
		}
		copyFile(t, w.program, spec.Path)
	}, spec)
	if before == after || !gone(before) {
		t.Error("a process of a program that is not there any more goes on")
	}
}

// copyFile makes a program that is the same in another place. It must not be written by this process, whose children
// would inherit the open file in between: then it could not be run (ETXTBSY).
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Link(from, to); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(to) })
}

func TestUnreadyAndReadyAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.run(quick(), w.server("a", ""), w.server("b", "", "a"))
	w.ready(s, "a", "b")
	before := status(s, "a").PID
	w.touch("a")
	eventually(t, "unready", func() bool { return status(s, "a").State == runner.Unready })
	if got := status(s, "a"); !strings.Contains(got.Message, "answers 500: data failed: reason withheld") {
		t.Errorf("message is %q", got.Message)
	}
	if got := status(s, "b"); got.State != runner.Ready {
		t.Errorf("b, which runs already, is %+v", got)
	}
	w.remove("a")
	w.ready(s, "a")
	if got := status(s, "a"); got.PID != before || got.Restarts != 0 || got.Message != "" {
		t.Errorf("%+v", got)
	}
}

func TestHungIsRestarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	timing := quick()
	timing.hungAfter = 2 * time.Second // b is given that long to start, too
	s, _ := w.run(timing, w.server("a", ""), w.server("b", "ignore", "a"))
	w.ready(s, "a", "b")
	b := status(s, "b").PID
	w.touch("b")
	var seen runner.Status
	eventually(t, "b is started again", func() bool {
		got := status(s, "b")
		if got.State == runner.Backoff {
			seen = got
		}
		return got.PID != b && got.PID != 0
	})
	if !gone(b) {
		t.Error("the process that hung goes on")
	}
	if seen.Message != "" && !strings.Contains(seen.Message, "it did not answer for 2s: http://b/readyz answers 500") {
		t.Errorf("message is %q", seen.Message)
	}
	w.remove("b")
	w.ready(s, "b")
}

// An etcd answers nobody while it is defragmented, which may take longer than others hang.
func TestPauseIsNoHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	timing := quick()
	timing.hungAfter = 500 * time.Millisecond
	pauses := w.server("b", "")
	pauses.Pause.Duration = time.Hour
	s, _ := w.run(timing, w.server("a", ""), pauses)
	w.ready(s, "a", "b")
	before := status(s, "b")
	w.touch("b")
	eventually(t, "b does not answer", func() bool { return status(s, "b").State == runner.Unready })
	w.touch("a")
	eventually(t, "a is started again", func() bool { return status(s, "a").Restarts > 0 })
	if after := status(s, "b"); after.PID != before.PID || after.State != runner.Unready {
		t.Errorf("b is %+v, was %+v", after, before)
	}
	w.remove("a")
	w.remove("b")
	w.ready(s, "a", "b")
}

// A component that cannot answer because another one does not is not to blame.
func TestHungOnlyByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	timing := quick()
	timing.hungAfter = 2 * time.Second
	s, _ := w.run(timing, w.server("a", ""), w.server("b", "", "a"))
	w.ready(s, "a", "b")
	before := status(s, "b")
	w.touch("a")
	w.touch("b")
	eventually(t, "a is started again", func() bool { return status(s, "a").Restarts > before.Restarts })
	w.remove("a")
	w.remove("b")
	w.ready(s, "a", "b")
	if after := status(s, "b"); after.PID != before.PID || after.Restarts != before.Restarts {
		t.Errorf("b is %+v, was %+v", after, before)
	}
}

func TestWaitReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.touch("a")
	s, _ := w.run(quick(), w.server("a", ""), w.spec("b", "wait"))
	var waiting sync.WaitGroup
	for range 100 {
		waiting.Go(func() {
			if err := s.WaitReady(t.Context(), "a", "b", "a"); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WaitReady(ctx, "a"); err == nil {
		t.Error("a was not ready, and the context had ended")
	}
	if err := s.WaitReady(ctx); err != nil {
		t.Errorf("nothing to wait for: %v", err)
	}
	w.remove("a")
	waiting.Wait()
}

func TestHowItStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := w.spec("a", "environment wait")
	spec.Files = []component.File{{Path: filepath.Join(w.dir.Component("a"), "file"), Mode: 0o600, Content: "content"}}
	spec.Directories = []string{filepath.Join(string(w.dir), "more", "directories")}
	s, _ := w.run(quick(), spec)
	w.ready(s, "a")
	var log []byte
	eventually(t, "its log", func() bool {
		log, _ = os.ReadFile(w.dir.Log("a"))
		return bytes.HasSuffix(log, []byte("end\n"))
	})
	got := strings.Split(strings.TrimSpace(string(log)), "\n")
	want := append([]string{"PATH=" + filepath.Dir(w.program) + ":" + searchPath}, spec.Env...)
	want = append(want, Marks(w.dir, "a", spec.Hash())...)
	want = append(want, "MUSTER_RESTARTS=0", "session=true", "directory="+w.dir.Component("a"), "end")
	if !slices.Equal(got, want) {
		t.Errorf("it sees\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for path, mode := range map[string]os.FileMode{
		spec.Files[0].Path: 0o600, w.dir.Log("a"): 0o600,
		w.dir.Component("a"): os.ModeDir | 0o700, w.dir.Logs(): os.ModeDir | 0o700, spec.Directories[0]: os.ModeDir | 0o700, filepath.Dir(spec.Directories[0]): os.ModeDir | 0o700,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", path, info, err, mode)
		}
	}
}

// When a process was started and how often it was started again is known to the next supervisor, too.
func TestTheNextSupervisorKnowsTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := w.server("a", "")
	s, stop := w.run(quick(), spec)
	w.ready(s, "a")
	first := status(s, "a")
	kill(t, first.PID, 9)
	eventually(t, "it is started again", func() bool { got := status(s, "a"); return got.State == runner.Ready && got.PID != first.PID })
	before := status(s, "a")
	if before.Restarts != 1 || before.Started.Before(first.Started) || time.Since(before.Started) > 5*time.Minute {
		t.Errorf("started again: %+v, before %+v", before, first)
	}
	stop()
	s, _ = w.run(quick(), spec)
	w.ready(s, "a")
	got := status(s, "a")
	if got.PID != before.PID || got.Restarts != 1 {
		t.Errorf("taken over: %+v, before %+v", got, before)
	}
	if apart := got.Started.Sub(before.Started).Abs(); apart > 5*time.Minute { // the kernel counts from the boot
		t.Errorf("it was started at %s, and before at %s", got.Started, before.Started)
	}
	kill(t, got.PID, 9)
	eventually(t, "it is started once more", func() bool { return status(s, "a").Restarts == 2 })
}
