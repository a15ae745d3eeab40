// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// firstThread calls a function on the process's first thread: goroutines are begun, each of which keeps its thread, until one has it.
func firstThread(t *testing.T, call func()) {
	t.Helper()
	const most = 1000
	leave := make(chan struct{})
	defer close(leave)
	for range most {
		found := make(chan bool)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			first := unix.Gettid() == unix.Getpid()
			if first {
				call()
			}
			found <- first
			<-leave
		}()
		if <-found {
			return
		}
	}
	t.Fatalf("none of %d goroutines was on the first thread", most)
}

func TestOnThreadIsNeverTheFirst(t *testing.T) {
	if !alone(t) {
		return
	}
	called := 0
	thread := 0
	note := func() { called, thread = called+1, unix.Gettid() }
	firstThread(t, func() { OnThread(note) })
	if called != 1 || thread == unix.Getpid() {
		t.Errorf("called %d times, last on thread %d of process %d", called, thread, unix.Getpid())
	}
	done := make(chan struct{})
	var again int
	go func() {
		defer close(done)
		OnThread(func() { again = unix.Gettid() })
	}()
	<-done
	if again == 0 || again == unix.Getpid() {
		t.Errorf("called on thread %d of process %d", again, unix.Getpid())
	}
}

// The process itself is never in the namespace, while one of its threads is: /proc/PID is what others find it by.
func TestInNetworkTheProcessStaysAtHome(t *testing.T) {
	if !alone(t) {
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces: run it as root")
	}
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan *os.File, 1)
	go OnThread(func() {
		defer close(made)
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		namespace, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			t.Error(err)
			return
		}
		made <- namespace
	})
	namespace, ok := <-made
	if !ok {
		t.FailNow()
	}
	defer func() { _ = namespace.Close() }()
	firstThread(t, func() {
		runtime.UnlockOSThread() // what is begun here is likely to run here, once this waits for it
		defer runtime.LockOSThread()
		for range 20 {
			var inside, process string
			err := InNetwork(namespace, func() (err error) {
				if inside, err = os.Readlink("/proc/thread-self/ns/net"); err != nil {
					return err
				}
				process, err = os.Readlink("/proc/self/ns/net")
				return err
			})
			if err != nil || inside == home || process != home {
				t.Errorf("at home in %s, the function is called in %s and the process seen in %s: %v", home, inside, process, err)
				return
			}
		}
	})
}

// alone runs the test in a process of its own, where nothing has taken the first thread for good, and tells whether this is it.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "MUSTER_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.count=1")
	command.Env = append(os.Environ(), mark+"=1")
	if out, err := command.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "PASS") {
		t.Errorf("%v:\n%s", err, out)
	}
	return false
}
