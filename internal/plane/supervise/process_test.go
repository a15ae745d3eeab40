// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/statedir"
)

// start runs a fake without a supervisor, until it has its marks.
func (w world) start(name, what string, env ...string) Process {
	w.Helper()
	spec := w.spec(name, what)
	spec.Env = append(spec.Env, env...)
	cmd, err := start(w.dir, spec, 0, nil, onThread)
	if err != nil {
		w.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	var found Process
	eventually(w.T, name+" runs", func() bool {
		i := slices.IndexFunc(w.find(), func(p Process) bool { found = p; return p.PID == cmd.Process.Pid })
		return i >= 0
	})
	return found
}

func TestFind(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	longer := other
	longer.dir = w.dir + "2" // whose path begins with the other's
	t.Cleanup(func() { _ = os.RemoveAll(string(longer.dir)) })
	t.Cleanup(func() {
		_, _ = Stop(context.WithoutCancel(t.Context()), longer.dir, 0, func(Process) bool { return true })
	})

	began := time.Now()
	first := w.start("a", "wait")
	second := w.start("b", "wait")
	other.start("c", "wait")
	longer.start("d", "wait")
	// Marks that are not marks: another variable that ends like one, and a state directory without a name.
	for _, env := range [][]string{
		{"NOT_" + EnvState + "=" + string(w.dir), EnvProcess + "=e"},
		{EnvState + "=" + string(w.dir)},
	} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = slices.Concat(env, []string{envFake + "=wait"})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}

	found := w.find()
	if len(found) != 2 || found[0] != first && found[0].PID != first.PID || found[1].PID != second.PID {
		t.Fatalf("found %+v", found)
	}
	p := found[0]
	if p.Name != "a" || p.Executable != w.program || p.Spec != w.spec("a", "wait").Hash() || !p.session || p.inside {
		t.Errorf("%+v", p)
	}
	if p.Started.Before(began.Add(-time.Second)) || p.Started.After(time.Now().Add(time.Second)) {
		t.Errorf("it started %s, at about %s", p.Started, began)
	}
}

func TestLeader(t *testing.T) {
	t.Parallel()
	const program = "/bin/kubernetes"
	processes := []Process{
		{Name: "etcd", PID: 1, Executable: program, inside: true},
		{Name: "etcd", PID: 2, Executable: "/bin/other"},
		{Name: "api", PID: 3, Executable: program},
		{Name: "etcd", PID: 4, Executable: program + " (deleted)"},
		{Name: "etcd", PID: 5, Executable: program},
	}
	if p, ok := Leader(processes, "etcd", program); !ok || p.PID != 4 {
		t.Errorf("leader is %+v", p)
	}
	if p, ok := Leader(processes[:3], "etcd", program); ok {
		t.Errorf("leader is %+v", p)
	}
	if p, ok := predecessor(processes, "etcd"); ok {
		t.Errorf("predecessor is %+v, which leads no session", p)
	}
}

// What a process leaves behind when it dies is not taken for it.
func TestChildIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.run(quick(), w.server("a", "fork"))
	w.ready(s, "a")
	before := status(s, "a").PID
	var child Process
	eventually(t, "the child", func() bool {
		found := w.find()
		i := slices.IndexFunc(found, func(p Process) bool { return p.PID != before })
		if i >= 0 {
			child = found[i]
		}
		return i >= 0 && !strings.HasPrefix(child.Executable, w.program)
	})
	if child.Name != "a" {
		t.Errorf("child is %+v", child)
	}
	kill(t, before, syscall.SIGKILL)
	eventually(t, "another process", func() bool {
		got := status(s, "a")
		return got.State == runner.Ready && got.PID != before && got.PID != child.PID
	})
	if gone(child.PID) {
		t.Error("the child was ended")
	}
}

// A container runs as root in a process namespace of its own and may have any marks, and a program at any path.
func TestProcessInAMachineIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := w.spec("a", "wait")
	cmd := exec.Command(w.program)
	cmd.Env = append(slices.Clone(spec.Env), Marks(w.dir, "a", spec.Hash())...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("this test needs root, to make a process namespace: %v", err)
	}
	go func() { _ = cmd.Wait() }()
	eventually(t, "the false process", func() bool { return len(w.find()) == 1 })
	s, _ := w.run(quick(), spec)
	w.ready(s, "a")
	if got := status(s, "a"); got.PID == cmd.Process.Pid {
		t.Errorf("%+v was taken over", got)
	}
	if len(w.find()) != 2 {
		t.Error("it is not listed, so `down` would not end it")
	}
}

// In the middle of execve a process has no environment to be known by, or had one that goes away while it is read: the
// more of it, the longer both take.
func TestFoundWhileItBecomesAnotherProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var long []string
	for n := range 50 {
		long = append(long, "LONG"+strconv.Itoa(n)+"="+strings.Repeat("x", 1000))
	}
	w.start("a", "again", long...)
	for n := range 500 {
		if len(w.find()) != 1 {
			t.Fatalf("overlooked at the look number %d", n)
		}
	}
	w.touch("a")
}

func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stays := w.start("stays", "wait")
	first, second := w.start("ends", "wait"), w.start("ends", "fork wait")
	eventually(t, "the child", func() bool { // Go's first child is one of its own, which ends at once
		return len(w.find()) == 4 && slices.ContainsFunc(w.find(), func(p Process) bool { return filepath.Base(p.Executable) == "sleep" })
	})
	stopped, err := Stop(t.Context(), w.dir, time.Hour, func(p Process) bool { return p.Name == "ends" })
	if err != nil || len(stopped) != 3 {
		t.Errorf("stopped %+v, %v", stopped, err)
	}
	if !gone(first.PID) || !gone(second.PID) || gone(stays.PID) {
		t.Errorf("running: %+v", w.find())
	}
	stopped, err = Stop(t.Context(), w.dir, time.Hour, func(p Process) bool { return p.Name == "ends" })
	if err != nil || len(stopped) != 0 {
		t.Errorf("stopped %+v again, %v", stopped, err)
	}
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, stop := w.run(quick(), w.server("a", "ignore")) // when it is ready, it ignores
	w.ready(s, "a")
	stop()
	const grace = 300 * time.Millisecond
	began := time.Now()
	stopped, err := Stop(t.Context(), w.dir, grace, func(Process) bool { return true })
	if err != nil || len(stopped) != 1 || !gone(stopped[0].PID) {
		t.Errorf("stopped %+v, %v", stopped, err)
	}
	if took := time.Since(began); took < grace {
		t.Errorf("killed after %s, before the grace of %s was over", took, grace)
	}
}

func TestStopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, stop := w.run(quick(), w.server("a", "ignore"))
	w.ready(s, "a")
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Stop(ctx, w.dir, time.Hour, func(Process) bool { return true }); err == nil {
		t.Error("no error")
	}
	if len(w.find()) != 1 {
		t.Error("killed without grace")
	}
}

func TestHandleNeverMeansAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start("a", "wait")
	renamed := p
	renamed.Spec = "other"
	if h, err := open(renamed, w.dir); err == nil {
		h.Close()
		t.Error("opened a process with another spec than was found")
	}
	if h, err := open(p, statedir.Dir("/elsewhere")); err == nil {
		h.Close()
		t.Error("opened a process of another state directory")
	}
	h, err := open(p, w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	kill(t, p.PID, syscall.SIGKILL)
	if err := h.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := h.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("signalling a process that has ended: %v", err)
	}
}

// A component of a cluster that runs from a file which was replaced is told from others that do.
func TestReplaced(t *testing.T) {
	t.Parallel()
	old, now := "/bin/program (deleted)", "/bin/program"
	for name, test := range map[string]struct {
		processes []Process
		want      bool
	}{
		"nothing runs":           {nil, false},
		"of the file":            {[]Process{{Name: "cluster/a/etcd", Executable: now, session: true}}, false},
		"replaced":               {[]Process{{Name: "cluster/a/etcd", Executable: old, session: true}}, true},
		"of the account":         {[]Process{{Name: "management-etcd", Executable: old, session: true}}, false},
		"handed over":            {[]Process{{Name: "cluster/a/front", Executable: old, session: true}, {Name: "cluster/a/front", Executable: now, session: true}}, false},
		"handed over, and again": {[]Process{{Name: "cluster/a/front", Executable: now, session: true}, {Name: "cluster/a/front", Executable: old, session: true}}, true},
		"started by a component": {[]Process{{Name: "cluster/a/front", Executable: now, session: true}, {Name: "cluster/a/front", Executable: old}}, false},
		"in a machine":           {[]Process{{Name: "cluster/a/front", Executable: old, session: true, inside: true}}, false},
	} {
		if got := Replaced(test.processes); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
