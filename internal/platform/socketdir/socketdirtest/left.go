// SPDX-License-Identifier: Apache-2.0

// Package socketdirtest makes what tests of listeners find on disk.
package socketdirtest

import (
	"net"
	"testing"
)

// Leave leaves a socket at a path, as a process does that was killed while it listened.
func Leave(t testing.TB, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}
