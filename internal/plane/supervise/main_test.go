// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/statedir"
)

// The test binary is its own component: with these in its environment it serves, or misbehaves, instead of testing.
const (
	envFake   = "SUPERVISE_TEST_FAKE"   // what it does: words of fakes, below
	envListen = "SUPERVISE_TEST_LISTEN" // where it serves: "unix /path" or "tcp address"
	envEnds   = "SUPERVISE_TEST_ENDS"   // the file to whose end a "farewell" writes a name, once it is told to end: "/path name"
	envFile   = "SUPERVISE_TEST_FILE"   // while it exists, a serving fake answers 500; a "note" goes to its end
)

func TestMain(m *testing.M) {
	if what := os.Getenv(envFake); what != "" {
		fakeComponent(strings.Fields(what))
	}
	os.Exit(m.Run())
}

func fakeComponent(what []string) {
	time.AfterFunc(5*time.Minute, func() { os.Exit(4) }) // if the tests were killed and cannot end it
	for _, word := range what {
		switch word {
		case "note": // the moment it started
			file, err := os.OpenFile(os.Getenv(envFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			fatal(err)
			_, err = fmt.Fprintln(file, time.Now().UnixMilli())
			fatal(err)
			fatal(file.Close())
		case "environment":
			session, err := unix.Getsid(0)
			fatal(err)
			directory, err := os.Getwd()
			fatal(err)
			fmt.Println(strings.Join(append(os.Environ(), fmt.Sprintf("session=%v", session == os.Getpid()), "directory="+directory, "end"), "\n"))
		case "look": // at what is its own, and at what is not
			look()
		case "fork": // a child of another program that has the marks, as a container shim has containerd's
			cmd := exec.Command("sleep", "300")
			fatal(cmd.Start())
			go func() { _ = cmd.Wait() }()
		case "again": // the same process, in execve most of the time
			if _, err := os.Stat(os.Getenv(envFile)); err != nil {
				fatal(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
			}
		case "farewell":
			farewell()
		case "ignore":
			signal.Ignore(syscall.SIGTERM)
		case "exit":
			os.Exit(3)
		case "serve":
			serve()
		case "wait":
			select {}
		}
	}
	select {}
}

func farewell() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		<-told
		path, name, _ := strings.Cut(os.Getenv(envEnds), " ")
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fatal(err)
		_, err = fmt.Fprintln(file, name)
		fatal(err)
		os.Exit(0)
	}()
}

func serve() {
	network, address, _ := strings.Cut(os.Getenv(envListen), " ")
	if network == "unix" {
		_ = os.Remove(address)
	}
	listener, err := net.Listen(network, address)
	fatal(err)
	fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(os.Getenv(envFile)); err == nil {
			http.Error(w, "[+]ping ok\n[-]data failed: reason withheld", http.StatusInternalServerError)
		}
	})))
}

func fatal(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// world is one state directory and the programs that run on it.
type world struct {
	*testing.T
	dir     statedir.Dir
	program string
}

// newWorld makes an empty world, and ends everything in it with the test.
func newWorld(t *testing.T) world {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		t.Fatal(err)
	}
	path, err := os.MkdirTemp("/tmp", "m") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	w := world{t, statedir.Dir(path), program}
	if err := os.Mkdir(w.dir.Run(), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := Stop(context.WithoutCancel(t.Context()), w.dir, 0, func(Process) bool { return true }); err != nil {
			t.Error(err)
		}
		if left := w.find(); len(left) > 0 {
			t.Errorf("left running: %+v", left)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w world) find() []Process {
	w.Helper()
	found, err := Find(w.dir)
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// file is where a fake's file is.
func (w world) file(name string) string { return filepath.Join(string(w.dir), name+".file") }

func (w world) touch(name string) {
	w.Helper()
	if err := os.WriteFile(w.file(name), nil, 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w world) remove(name string) {
	w.Helper()
	if err := os.Remove(w.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.Fatal(err)
	}
}

// spec is a fake without a probe.
func (w world) spec(name, what string, after ...string) component.Spec {
	return component.Spec{Name: name, Path: w.program, After: after, Env: []string{envFake + "=" + what, envFile + "=" + w.file(name)}}
}

// server is a fake that serves on a socket and is asked there.
func (w world) server(name, what string, after ...string) component.Spec {
	spec := w.spec(name, what+" serve", after...)
	socket := filepath.Join(w.dir.Run(), name)
	spec.Env = append(spec.Env, envListen+"=unix "+socket)
	spec.Probe = &component.Probe{URL: "http://" + name + "/readyz", Socket: socket}
	return spec
}

// quick is timing for tests. Nothing hangs, unless a test says so.
func quick() timing {
	return timing{
		backoffMin: 20 * time.Millisecond, backoffMax: 160 * time.Millisecond, stableAfter: time.Hour,
		probeStarting: 10 * time.Millisecond, probeServing: 20 * time.Millisecond, hungAfter: time.Hour,
	}
}

// run supervises until the test ends or the returned function is called.
func (w world) run(timing timing, specs ...component.Spec) (*Supervisor, func()) {
	w.Helper()
	return w.runAs(Config{}, timing, specs...)
}

// runIn is run with groups that hold processes to their memory.
func (w world) runIn(memory func(component.Spec) (MemoryGroup, error), timing timing, specs ...component.Spec) (*Supervisor, func()) {
	w.Helper()
	return w.runAs(Config{Memory: memory}, timing, specs...)
}

// runAs is run with more of a configuration.
func (w world) runAs(config Config, timing timing, specs ...component.Spec) (*Supervisor, func()) {
	w.Helper()
	config.State, config.Log, config.StopGrace = w.dir, slog.New(slog.NewTextHandler(w.Output(), nil)), 500*time.Millisecond
	s, err := New(config)
	if err != nil {
		w.Fatal(err)
	}
	s.timing = timing
	w.apply(s, specs...)
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	stop := func() { cancel(); <-done }
	w.Cleanup(stop)
	return s, stop
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

func (w world) ready(s *Supervisor, names ...string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
	defer cancel()
	if err := s.WaitReady(ctx, names...); err != nil {
		w.Fatalf("waiting for %v: %v; %+v", names, err, s.Status())
	}
}

// status is the status of one component; empty as long as it has none.
func status(s *Supervisor, name string) runner.Status {
	statuses := s.Status()
	if i := slices.IndexFunc(statuses, func(status runner.Status) bool { return status.Name == name }); i >= 0 {
		return statuses[i]
	}
	return runner.Status{}
}

func gone(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(raw), ") Z ")
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}
