// SPDX-License-Identifier: Apache-2.0

package socketdir_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/socketdir/socketdirtest"
)

// A private socket takes the place of one that a killed process left, and goes when it is closed.
func TestListenPrivate(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	path := filepath.Join(t.TempDir(), "a.sock")
	for range 2 {
		socketdirtest.Leave(t, path)
		listener, err := socketdir.ListenPrivate(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("the socket: %v, %v", info.Mode(), err)
		}
		connection, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = connection.Close(), listener.Close()
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("the socket stays: %v", err)
		}
	}
}

// A file that is not a socket stays as it is.
func TestListenPrivateKeepsFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := socketdir.ListenPrivate(t.Context(), path); err == nil || !strings.Contains(err.Error(), "a file that is not a socket") {
		t.Error(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "kept" {
		t.Errorf("%q, %v", content, err)
	}
}
