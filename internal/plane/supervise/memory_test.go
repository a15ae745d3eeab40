// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/memorylimit"
)

var errTest = errors.New("it does not work today")

// fakeGroup is a group that remembers what was asked of it, and fails on demand.
type fakeGroup struct {
	mu     sync.Mutex
	did    []string
	fails  map[string]error // by the first word of what is asked
	report memorylimit.Report
}

func (g *fakeGroup) do(what string, arguments ...any) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.did = append(g.did, strings.TrimSpace(what+" "+fmt.Sprintln(arguments...)))
	return g.fails[what]
}

func (g *fakeGroup) Renew(limit int64) error {
	err := g.do("renew", limit)
	g.end(memorylimit.Report{Limit: limit})
	return err
}

func (g *fakeGroup) Start(cmd *exec.Cmd, begin func(*exec.Cmd) error) error {
	if err := g.do("start"); err != nil {
		return err
	}
	return begin(cmd)
}

func (g *fakeGroup) Hold(limit int64) error { return g.do("hold", limit) }
func (g *fakeGroup) Take(pid int) error     { return g.do("take", pid) }

func (g *fakeGroup) Report() (memorylimit.Report, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.report, nil
}

// end sets what is reported.
func (g *fakeGroup) end(report memorylimit.Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.report = report
}

func (g *fakeGroup) asked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.did)
}

func (g *fakeGroup) find(component.Spec) (MemoryGroup, error) { return g, nil }

func limited(spec component.Spec, limit int64) component.Spec {
	spec.Memory = limit
	return spec
}

func TestStartedInItsGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := &fakeGroup{}
	s, _ := w.runIn(group.find, quick(), limited(w.server("a", ""), 64<<20), w.server("b", ""))
	w.ready(s, "a", "b")
	if got := status(s, "a").Memory; got != (runner.Memory{Limit: 64 << 20}) {
		t.Errorf("a has %+v", got)
	}
	if got := status(s, "b").Memory; got != (runner.Memory{}) {
		t.Errorf("b, which has no limit, has %+v", got)
	}
	if got, want := group.asked(), []string{"renew 67108864", "start"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEndedAtItsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := &fakeGroup{}
	s, stop := w.runIn(group.find, quick(), limited(w.server("a", ""), 64<<20))
	end := func(sig syscall.Signal, times int) {
		t.Helper()
		w.ready(s, "a")
		before := status(s, "a")
		kill(t, before.PID, sig)
		eventually(t, "another process", func() bool {
			got := status(s, "a")
			return got.State == runner.Ready && got.PID != before.PID && got.Restarts == before.Restarts+1 && got.Memory.Ended == times
		})
	}
	end(syscall.SIGKILL, 0) // by somebody else
	for times := range 2 {
		group.end(memorylimit.Report{Limit: 64 << 20, Peak: 63 << 20, Used: 1, Ended: 1})
		end(syscall.SIGKILL, times+1)
		if last := status(s, "a").Memory.Last; last.Limit != 64<<20 || last.Used != 63<<20 || time.Since(last.At) > time.Minute {
			t.Errorf("%+v", last)
		}
	}
	end(syscall.SIGKILL, 2) // by somebody else again: the group is new
	if got := status(s, "a").Memory.Problem; got != "" {
		t.Error(got)
	}

	// While no supervisor runs it ends at its limit.
	pid := status(s, "a").PID
	stop()
	group.end(memorylimit.Report{Limit: 64 << 20, Peak: 64 << 20, Ended: 1})
	kill(t, pid, syscall.SIGKILL)
	eventually(t, "its end", func() bool { return gone(pid) })
	s, _ = w.runIn(group.find, quick(), limited(w.server("a", ""), 64<<20))
	w.ready(s, "a")
	if got := status(s, "a").Memory.Ended; got != 1 {
		t.Errorf("it ended %d times", got)
	}
}

func TestReasonOfTheEnd(t *testing.T) {
	t.Parallel()
	group := &fakeGroup{report: memorylimit.Report{Limit: 64 << 20, Peak: 63 << 20, Ended: 1}}
	s, err := New(Config{State: "/none", Log: slog.New(slog.DiscardHandler), Memory: group.find})
	if err != nil {
		t.Fatal(err)
	}
	m := newMember(s, component.Spec{Name: "a", Memory: 64 << 20}, nil)
	const want = "the kernel ended it at its memory limit: it used 63 MiB, and the limit is 64 MiB"
	if reason, atLimit := m.noteEnd(); !atLimit || reason != want {
		t.Errorf("%q, %v", reason, atLimit)
	}
	if reason, atLimit := m.noteEnd(); atLimit {
		t.Errorf("it is noted twice: %q", reason)
	}
	if reason, atLimit := newMember(s, m.spec(), nil).noteEnd(); atLimit {
		t.Errorf("the next supervisor notes it, too: %q", reason)
	}
}

// Another limit restarts nothing. A process that an earlier Muster started without a group is moved into one in the
// same way.
func TestLimitOfOneThatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, stop := w.run(quick(), w.server("a", "")) // without groups
	w.ready(s, "a")
	pid := status(s, "a").PID
	stop()
	for _, test := range []struct {
		what  string
		fails map[string]error
		did   []string
		want  runner.Memory
	}{
		{"it is moved", nil, []string{"hold 67108864", fmt.Sprint("take ", pid)}, runner.Memory{Limit: 64 << 20}},
		{
			"it uses more",
			map[string]error{"hold": &memorylimit.InUse{Asked: 64 << 20, Used: 80 << 20, Limit: 128 << 20}},
			[]string{"hold 67108864", fmt.Sprint("take ", pid)},
			runner.Memory{Limit: 128 << 20, Problem: "a limit of 64 MiB cannot take effect while 80 MiB are in use; the limit stays 128 MiB"},
		},
		{"there are no groups", map[string]error{"hold": errTest}, []string{"hold 67108864"}, runner.Memory{Problem: errTest.Error()}},
		{"it cannot be moved", map[string]error{"take": errTest}, []string{"hold 67108864", fmt.Sprint("take ", pid)}, runner.Memory{Problem: errTest.Error()}},
	} {
		group := &fakeGroup{fails: test.fails, report: memorylimit.Report{Ended: 3}} // of before
		s, stop := w.runIn(group.find, quick(), limited(w.server("a", ""), 64<<20))
		w.ready(s, "a")
		if got := status(s, "a"); got.PID != pid || got.Restarts != 0 || got.Memory != test.want {
			t.Errorf("%s: %+v, want process %d with %+v", test.what, got, pid, test.want)
		}
		if got := group.asked(); !slices.Equal(got, test.did) {
			t.Errorf("%s: %q, want %q", test.what, got, test.did)
		}
		stop()
	}
}

// Where a process cannot be held it runs all the same, and its status says why it is not.
func TestUnlimited(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		find  func(*fakeGroup) func(component.Spec) (MemoryGroup, error)
		fails map[string]error
		did   []string // "take" without the process
		want  runner.Memory
	}{
		"the host cannot": {
			find: func(*fakeGroup) func(component.Spec) (MemoryGroup, error) {
				return func(component.Spec) (MemoryGroup, error) { return nil, errTest }
			},
			want: runner.Memory{Problem: errTest.Error()},
		},
		"another is in it": {
			fails: map[string]error{"renew": &memorylimit.InUse{Asked: 64 << 20, Used: 80 << 20, Limit: 128 << 20}}, did: []string{"renew", "start"},
			want: runner.Memory{Limit: 128 << 20, Problem: "a limit of 64 MiB cannot take effect while 80 MiB are in use; the limit stays 128 MiB"},
		},
		"no group can be made":   {fails: map[string]error{"renew": errTest}, did: []string{"renew"}, want: runner.Memory{Problem: errTest.Error()}},
		"none can be started in": {fails: map[string]error{"start": errTest}, did: []string{"renew", "start", "take"}, want: runner.Memory{Limit: 64 << 20}},
		"none can be moved into": {
			fails: map[string]error{"start": errTest, "take": errTest}, did: []string{"renew", "start", "take"}, want: runner.Memory{Problem: errTest.Error()},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			group := &fakeGroup{fails: test.fails}
			find := group.find
			if test.find != nil {
				find = test.find(group)
			}
			s, _ := w.runIn(find, quick(), limited(w.server("a", ""), 64<<20))
			w.ready(s, "a")
			if got := status(s, "a"); got.Restarts != 0 || got.Memory != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			var did []string
			for _, asked := range group.asked() {
				word, _, _ := strings.Cut(asked, " ")
				did = append(did, word)
			}
			if !slices.Equal(did, test.did) {
				t.Errorf("%q, want %q", did, test.did)
			}
		})
	}
}
