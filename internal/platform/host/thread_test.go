// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host/hosttest"
)

func TestOnThreadIsNeverTheFirst(t *testing.T) {
	if !hosttest.Alone(t) {
		return
	}
	called := 0
	thread := 0
	note := func() { called, thread = called+1, unix.Gettid() }
	hosttest.FirstThread(t, func() { OnThread(note) })
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
	if !hosttest.Alone(t) {
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
	hosttest.FirstThread(t, func() {
		runtime.UnlockOSThread() // a goroutine that is started here is likely to run here, once this waits for it
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
