// SPDX-License-Identifier: Apache-2.0

// This test makes network namespaces, which needs root.

package vpc

import (
	"os"
	"runtime"
	"testing"

	"muster.dev/muster/internal/platform/host/hosttest"
)

// A process that made the network is not seen in it afterwards (/proc/PID is its first thread's, which the runtime
// cannot end): it would be taken for one inside, and what it starts would be there.
func TestTheProcessDoesNotMoveIntoTheNetwork(t *testing.T) {
	if !hosttest.Alone(t) {
		return
	}
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	hosttest.FirstThread(t, func() {
		runtime.UnlockOSThread() // a goroutine that is started here is likely to run here, once this waits for it
		defer runtime.LockOSThread()
		for range 10 {
			newNetwork(t)
		}
	})
	if now, err := os.Readlink("/proc/self/ns/net"); err != nil || now != home {
		t.Errorf("the process was in %s and is seen in %s: %v", home, now, err)
	}
}
