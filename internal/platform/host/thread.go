// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread calls a function on a thread that no other goroutine gets, since namespaces belong to threads, and returns
// when it has. Call it in a goroutine of its own, at whose end the runtime ends the thread, unless the function unlocks
// it (runtime.UnlockOSThread): then the thread must be where it was.
//
// The process's first thread the runtime cannot end. That one waits for another to do it, or the whole process would be
// seen in another's namespaces, from then on if it stays there (/proc/PID is its first thread's).
func OnThread(call func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		call()
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		call()
	}()
	<-done
}
