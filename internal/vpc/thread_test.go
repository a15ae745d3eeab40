// SPDX-License-Identifier: Apache-2.0

// This test makes network namespaces, which needs root.

package vpc

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that made the network is not seen in it afterwards (/proc/PID is its first thread's, which the runtime cannot end): it
// would be taken for one inside, and what it starts would be there.
func TestTheProcessDoesNotMoveIntoTheNetwork(t *testing.T) {
	if !alone(t) {
		return
	}
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	const most = 1000 // goroutines, each of which keeps its thread until one has the first
	leave := make(chan struct{})
	defer close(leave)
	for range most {
		found := make(chan bool, 1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			defer close(found)
			first := unix.Gettid() == unix.Getpid()
			if first {
				runtime.UnlockOSThread() // what is begun from here is likely to run here, once this waits for it
				for range 10 {
					newNetwork(t)
				}
				runtime.LockOSThread()
			}
			found <- first
			<-leave
		}()
		if !<-found {
			continue
		}
		if now, err := os.Readlink("/proc/self/ns/net"); err != nil || now != home {
			t.Errorf("the process was in %s and is seen in %s: %v", home, now, err)
		}
		return
	}
	t.Fatalf("none of %d goroutines was on the first thread", most)
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
