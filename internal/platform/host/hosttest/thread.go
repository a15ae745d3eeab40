// SPDX-License-Identifier: Apache-2.0

// Package hosttest is for tests about threads, which are a process's and not a test's: one that has moved into a
// namespace, or that a goroutine keeps, is so for all that runs afterwards. It has a FUSE file system, too, whose program
// may never answer.
package hosttest

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Alone runs the test in a process of its own, where nothing has taken the first thread for good, and reports whether
// this is it.
func Alone(t *testing.T) bool {
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

// FirstThread calls a function on the process's first thread: it starts goroutines that lock their threads until one of
// them is on the first thread.
func FirstThread(t *testing.T, call func()) {
	t.Helper()
	const most = 1000
	leave := make(chan struct{})
	defer close(leave)
	for range most {
		found := make(chan bool, 1)
		go func() {
			defer close(found) // the function may end the goroutine (testing.T.Fatal)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			first := unix.Gettid() == unix.Getpid()
			if first {
				call()
			}
			found <- first
			<-leave
		}()
		if first, called := <-found; first || !called {
			return
		}
	}
	t.Fatalf("none of %d goroutines was on the first thread", most)
}
