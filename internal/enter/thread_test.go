// SPDX-License-Identifier: Apache-2.0

package enter

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The first thread of a process outlives every goroutine: what enters namespaces must not be that one.
func TestOnThreadSparesTheFirst(t *testing.T) {
	used := make(chan int, 1)
	call := func() { used <- unix.Gettid() }
	found := make(chan bool)
	free := make(chan struct{})
	defer close(free)
	for range 100 { // each keeps its thread, so that the next is given another, the first among them
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			first := unix.Gettid() == os.Getpid()
			if first {
				onThread(call)
			}
			found <- first
			<-free
		}()
		if <-found {
			if id := <-used; id == os.Getpid() {
				t.Error("it was called on the first thread")
			}
			return
		}
	}
	t.Fatal("no goroutine was given the first thread")
}
