// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// InNetwork runs fn in a network namespace. A socket belongs for good to the namespace of the thread that makes it, so
// a listener or connection that fn makes may be used anywhere afterwards. fn must not start goroutines that make
// sockets.
func InNetwork(namespace *os.File, fn func() error) error {
	done := make(chan error, 1)
	go OnThread(func() {
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- fmt.Errorf("opening network namespace: %w", err)
			return
		}
		defer func() { _ = home.Close() }()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("entering network namespace %s: %w", namespace.Name(), err)
			return
		}
		err = fn()
		// A thread that cannot be brought back must not serve other goroutines: the runtime ends it with this one.
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	})
	return <-done
}
