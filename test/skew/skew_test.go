// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// showClocks has this program show what it makes of the time, in place of testing.
const showClocks = "SKEW_SHOW_CLOCKS"

func TestMain(m *testing.M) {
	if os.Getenv(showClocks) == "" {
		os.Exit(m.Run())
	}
	if err := json.NewEncoder(os.Stdout).Encode(look()); err != nil {
		os.Exit(1)
	}
}

// clocks are what a Go program sees: in nanoseconds, by each way to ask.
type clocks struct {
	Wall    map[string]int64
	Steady  map[string]int64
	Child   string  // the output of a date(1) that it starts
	Threads []int64 // the time of day on threads of its own
	Bad     string  // the error for a place that cannot be written to
}

func look() clocks {
	c := clocks{Wall: map[string]int64{"time.Now": time.Now().UnixNano()}, Steady: map[string]int64{}}
	for name, clock := range map[string]int32{"realtime": unix.CLOCK_REALTIME, "coarse": unix.CLOCK_REALTIME_COARSE, "alarm": unix.CLOCK_REALTIME_ALARM} {
		var t unix.Timespec
		if err := unix.ClockGettime(clock, &t); err == nil { // the one for alarms is not everywhere
			c.Wall[name] = t.Nano()
		}
	}
	for name, clock := range map[string]int32{"monotonic": unix.CLOCK_MONOTONIC, "boottime": unix.CLOCK_BOOTTIME} {
		var t unix.Timespec
		_ = unix.ClockGettime(clock, &t)
		c.Steady[name] = t.Nano()
	}
	var t unix.Timeval
	_ = unix.Gettimeofday(&t)
	c.Wall["gettimeofday"] = t.Nano()
	var seconds int64
	returned, _, _ := unix.RawSyscall(unix.SYS_TIME, uintptr(unsafe.Pointer(&seconds)), 0, 0)
	c.Wall["time"], c.Wall["time returned"] = seconds*1e9, int64(returned)*1e9
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, 1, 0)
	c.Bad = errno.Error()
	out, _ := exec.Command("date", "+%s").Output()
	c.Child = strings.TrimSpace(string(out))
	c.Threads = make([]int64, 8)
	var group sync.WaitGroup
	for n := range c.Threads {
		group.Go(func() { c.Threads[n] = time.Now().UnixNano() })
	}
	group.Wait()
	return c
}

func TestSkew(t *testing.T) {
	skew := filepath.Join(t.TempDir(), "skew")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", skew, ".").CombinedOutput(); err != nil {
		t.Fatalf("building it: %v\n%s", err, out)
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, string)
	}{
		{"a Go program sees another time by every way to ask", otherTimeInGo},
		{"so do programs of others and what they start", otherTimeElsewhere},
		{"exit status and signals pass through", passThrough},
		{"the command is the process that was started", sameProcess},
		{"a tracer that dies takes all with it", tracerDies},
		{"a tracer ends with the last of them", tracerEnds},
		{"what is wrong is said", wrongIsSaid},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Cleanup(func() { expectNone(t, skew) })
			test.run(t, skew)
		})
	}
}

// expectNone fails the test if a process of the program still runs after a moment.
func expectNone(t *testing.T, path string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		left := processesOf(path)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("processes %v are left", left)
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}

// processesOf are those that run a program.
func processesOf(path string) []int {
	var found []int
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if executable, err := os.Readlink(link); err == nil && executable == path {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			found = append(found, pid)
		}
	}
	return found
}

// near reports whether a moment is the present one, an offset away. The steps around it take far less than a minute.
func near(at time.Time, offset time.Duration) bool {
	return time.Until(at.Add(-offset)).Abs() < time.Minute
}

func otherTimeInGo(t *testing.T, skew string) {
	for _, offset := range []time.Duration{2 * time.Hour, -2 * time.Hour, 400*24*time.Hour + 500*time.Millisecond, 0} {
		cmd := exec.CommandContext(t.Context(), skew, offset.String(), os.Args[0])
		cmd.Env = append(os.Environ(), showClocks+"=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var c clocks
		if err := json.Unmarshal(out, &c); err != nil {
			t.Fatal(err)
		}
		if len(c.Wall) < 6 || len(c.Threads) != 8 {
			t.Errorf("%s: too little was asked: %+v", offset, c)
		}
		for name, at := range c.Wall {
			if !near(time.Unix(0, at), offset) {
				t.Errorf("%s: by %s it is %s", offset, name, time.Unix(0, at))
			}
		}
		for n, at := range c.Threads {
			if !near(time.Unix(0, at), offset) {
				t.Errorf("%s: on thread %d it is %s", offset, n, time.Unix(0, at))
			}
		}
		for name, at := range look().Steady {
			if passed := time.Duration(at - c.Steady[name]); passed < 0 || passed > time.Minute {
				t.Errorf("%s: %s is shifted by %s", offset, name, passed)
			}
		}
		if seconds, err := strconv.ParseInt(c.Child, 10, 64); err != nil || !near(time.Unix(seconds, 0), offset) {
			t.Errorf("%s: date prints %q (%v)", offset, c.Child, err)
		}
		if c.Bad != unix.EFAULT.Error() {
			t.Errorf("%s: an address that cannot be written to is answered %q", offset, c.Bad)
		}
	}
}

func otherTimeElsewhere(t *testing.T, skew string) {
	for name, script := range map[string]string{
		"a program":                       "exec date +%s",
		"a child":                         "date +%s; true",
		"a grandchild behind its parent":  "(date +%s) & wait",
		"a pipeline":                      "date +%s | cat",
		"a long command line":             "date +%s '-uIignored' 2>/dev/null || env X=$(seq -s, 20000) date +%s",
		"a program skewed by another one": skew + " 0s date +%s",
	} {
		out, err := exec.CommandContext(t.Context(), skew, "48h", "sh", "-c", script).Output()
		if name == "a program skewed by another one" {
			// A process has one tracer: the second must refuse, and not run the command by the first one's clock.
			if err == nil || len(out) != 0 {
				t.Errorf("%s: %s%v", name, out, err)
			}
			continue
		}
		seconds, parsed := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil || parsed != nil || !near(time.Unix(seconds, 0), 48*time.Hour) {
			t.Errorf("%s: %s%v %v", name, out, err, parsed)
		}
	}
}

func passThrough(t *testing.T, skew string) {
	for script, want := range map[string]string{
		"exit 0": "exit status 0", "exit 7": "exit status 7", "exit 255": "exit status 255",
		"kill -TERM $$": "signal: terminated", "kill -KILL $$": "signal: killed", "kill -USR1 $$": "signal: user defined signal 1",
		"trap 'exit 3' TERM; kill -TERM $$; exit 1": "exit status 3",
		"date >/dev/null; exit 9":                   "exit status 9",
	} {
		cmd := exec.CommandContext(t.Context(), skew, "2h", "sh", "-c", script)
		_ = cmd.Run() // its state says more
		if got := cmd.ProcessState.String(); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
}

// started starts a shell that says when it is ready and then waits for ever.
func started(t *testing.T, skew, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), skew, "2h", "sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 64)
	n, err := out.Read(said)
	if want := fmt.Sprintf("%d\n", cmd.Process.Pid); err != nil || string(said[:n]) != want {
		t.Fatalf("the command says that it is process %q, not %q (%v)", said[:n], want, err)
	}
	return cmd
}

func sameProcess(t *testing.T, skew string) {
	cmd := started(t, skew, "trap 'exit 5' TERM; echo $$; while :; do sleep 0.01; done")
	// Stopped, it stays stopped until it is told to go on.
	state := func() string {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))[0]
	}
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it is told to stop, and its parent hears %v (%v)", status, err)
	}
	for range 20 { // it would run again at once, or not at all
		if got := state(); got != "T" && got != "t" {
			t.Errorf("its state is %s", got)
		}
		<-time.After(5 * time.Millisecond)
	}
	if err := cmd.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WCONTINUED, nil); err != nil || !status.Continued() {
		t.Fatalf("it is told to go on, and its parent hears %v (%v)", status, err)
	}
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.String(); got != "exit status 5" {
		t.Errorf("told to end it ends with %s", got)
	}
}

func tracerDies(t *testing.T, skew string) {
	cmd := started(t, skew, "echo $$; while :; do sleep 0.01; done")
	tracers := processesOf(skew)
	if len(tracers) != 1 {
		t.Fatalf("%v trace", tracers)
	}
	// Signals for a whole group or unit do not end it.
	if err := syscall.Kill(tracers[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(tracers[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	patience := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Signal(unix.SIGABRT) })
	defer patience.Stop()
	_ = cmd.Wait()
	if got := cmd.ProcessState.String(); got != "signal: killed" {
		t.Errorf("the command ends with %s", got)
	}
}

func tracerEnds(t *testing.T, skew string) {
	cmd := started(t, skew, "sleep 60 >/dev/null & echo $$; exec sleep 60")
	tracers := processesOf(skew)
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || len(tracers) != 1 {
		t.Fatalf("the command's only child is its own: %q (%v); tracers are %v", raw, err, tracers)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if still := processesOf(skew); len(still) != 1 {
		t.Errorf("with a child left, %v trace", still)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	expectNone(t, skew)
}

func wrongIsSaid(t *testing.T, skew string) {
	for want, args := range map[string][]string{
		"usage: skew OFFSET COMMAND":                            {"2h"},
		"OFFSET must be like":                                   {"later", "date"},
		`exec: "no-such-program": executable file not found in`: {"2h", "no-such-program"},
	} {
		out, err := exec.CommandContext(t.Context(), skew, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitFailed && exit.ExitCode() != exitNotFound || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
