// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestMain is also a program that becomes itself again and again until there is a file, so that it is in execve(2) most
// of the time.
func TestMain(m *testing.M) {
	if os.Getenv("BECOMES_ITSELF") == "" {
		os.Exit(m.Run())
	}
	if _, err := os.Stat(os.Getenv("UNTIL")); err == nil {
		return
	}
	_ = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	os.Exit(1)
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}
