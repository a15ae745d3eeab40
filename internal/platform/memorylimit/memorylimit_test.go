// SPDX-License-Identifier: Apache-2.0

package memorylimit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/process"
)

// envEater makes the test binary a program that takes memory: as many MiB as each line of its input says, until the
// input ends.
const envEater = "MEMORYLIMIT_TEST_EATER"

func TestMain(m *testing.M) {
	if os.Getenv(envEater) != "" {
		eat()
		return
	}
	m.Run()
}

func eat() {
	for {
		var mebibytes int
		if _, err := fmt.Scanln(&mebibytes); err != nil {
			return
		}
		// Not of Go's heap: the race detector keeps several times as much memory besides.
		part, err := unix.Mmap(-1, 0, mebibytes<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return
		}
		for i := range part {
			part[i] = byte(i)
		}
		fmt.Println(mebibytes)
	}
}

// eater is a program that takes memory.
type eater struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out io.Reader
}

// newEater starts one, and ends it with the test.
// inGroup starts programs in a group.
func inGroup(g Group) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error { return g.Start(cmd, (*exec.Cmd).Start) }
}

func newEater(t *testing.T, start func(*exec.Cmd) error) *eater {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{envEater + "=1"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &eater{t, cmd, in, out}
}

// eat has it take so much more, and reports whether it lives.
func (e *eater) eat(mebibytes int) bool {
	e.t.Helper()
	if _, err := fmt.Fprintln(e.in, mebibytes); err != nil {
		return false
	}
	var parts int
	_, err := fmt.Fscanln(e.out, &parts)
	return err == nil
}

// newGroup is a group of this host, which goes with the test.
func newGroup(t *testing.T) Group {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("control groups are made by root")
	}
	controller, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	name := "/muster-memorylimit-test/" + strconv.Itoa(os.Getpid())
	t.Cleanup(func() {
		if err := controller.Remove(name); err != nil {
			t.Error(err)
		}
	})
	return controller.Group(name + "/g")
}

func (g Group) report(t *testing.T) Report {
	t.Helper()
	report, err := g.Report()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// A program at its limit is ended, one beside it is not, and the next one in the group begins anew.
func TestEndedAtItsLimit(t *testing.T) {
	g := newGroup(t)
	if err := g.Renew(64 << 20); err != nil {
		t.Fatal(err)
	}
	beside, held := newEater(t, (*exec.Cmd).Start), newEater(t, inGroup(g))
	if !held.eat(8) {
		t.Fatal("it ended below its limit")
	}
	if report := g.report(t); report.Used < 8<<20 || report.Limit != 64<<20 || report.Ended != 0 {
		t.Errorf("while it runs: %+v", report)
	}
	if held.eat(100) {
		t.Fatal("it lives beyond its limit")
	}
	err := held.cmd.Wait()
	if status, ok := held.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended: %v", err)
	}
	if report := g.report(t); report.Ended != 1 || report.Peak < 60<<20 || report.Peak > 65<<20 { // with pages that the kernel is about to refuse
		t.Errorf("after its end: %+v", report)
	}
	if !beside.eat(100) {
		t.Error("another program was ended")
	}
	if err := g.Renew(256 << 20); err != nil {
		t.Fatal(err)
	}
	if !newEater(t, inGroup(g)).eat(100) {
		t.Error("the next one ended below its limit")
	}
	if report := g.report(t); report.Ended != 0 || report.Limit != 256<<20 {
		t.Errorf("of the next one: %+v", report)
	}
}

// A limit is raised and lowered under a program that runs, but not below what it uses.
func TestLimitChanges(t *testing.T) {
	g := newGroup(t)
	if err := g.Hold(96 << 20); err != nil {
		t.Fatal(err)
	}
	held := newEater(t, inGroup(g))
	if !held.eat(64) {
		t.Fatal("it ended below its limit")
	}
	err := g.Hold(32 << 20)
	if inUse, ok := errors.AsType[*InUse](err); !ok || inUse.Limit != 96<<20 || inUse.Used < 64<<20 {
		t.Errorf("lowered below what is in use: %v", err)
	}
	for _, limit := range []int64{512 << 20, 256 << 20} {
		if err := g.Hold(limit); err != nil {
			t.Fatal(err)
		}
		if report := g.report(t); report.Limit != limit {
			t.Errorf("the limit is %d, want %d", report.Limit, limit)
		}
	}
	if !held.eat(100) {
		t.Error("it ended below the limit that was raised")
	}
}

// A program that runs already is bounded from then on.
func TestTaken(t *testing.T) {
	g := newGroup(t)
	running := newEater(t, (*exec.Cmd).Start)
	if !running.eat(100) {
		t.Fatal("it does not run")
	}
	if err := g.Hold(64 << 20); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Take(running.cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	if !running.eat(8) {
		t.Error("what it had before counts")
	}
	if running.eat(100) {
		t.Error("it lives beyond its limit")
	}
}

// A group that a process is still in keeps its report. A group that does not exist has an empty report.
func TestRenewBesideAProcess(t *testing.T) {
	g := newGroup(t)
	if report := g.report(t); report != (Report{}) {
		t.Errorf("before there is a group: %+v", report)
	}
	if err := g.Renew(64 << 20); err != nil {
		t.Fatal(err)
	}
	held := newEater(t, inGroup(g))
	if err := g.Renew(128 << 20); err != nil {
		t.Fatal(err)
	}
	if !held.eat(8) || g.report(t).Limit != 128<<20 {
		t.Errorf("it is not held: %+v", g.report(t))
	}
	handle, err := process.Hold(held.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	if err := handle.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
}
