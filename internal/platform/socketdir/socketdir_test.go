// SPDX-License-Identifier: Apache-2.0

package socketdir_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/socketdir/socketdirtest"
)

// A socket comes, is left by a killed process, comes again and goes: its directory is the same one throughout.
func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	socketdirtest.Leave(t, path) // by an earlier version
	if err := socketdir.MakeDir(path); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(socketdir.Dir(path))
	if err != nil || before.Mode().Perm() != 0o711 {
		t.Fatal(before.Mode(), err)
	}
	for range 2 {
		listener, err := socketdir.Listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		connection, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.Close()
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
			t.Errorf("the socket: %v, %v", info, err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the link stays: %v", err)
		}
		socketdirtest.Leave(t, filepath.Join(socketdir.Dir(path), "s"))
	}
	after, err := os.Stat(socketdir.Dir(path))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the directory is another one: %v", err)
	}
	if err := socketdir.Remove(path); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
