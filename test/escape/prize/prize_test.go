// SPDX-License-Identifier: Apache-2.0

//go:build linux

// These tests plant secrets of the host's root, so they need root.
package prize_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/test/escape/prize"
)

// A prize that is not there would be held by every machine.
func TestEveryPrizeIsThere(t *testing.T) {
	dir := t.TempDir()
	planted, err := prize.Plant(dir)
	if err != nil {
		t.Fatal(err)
	}
	where := planted.Map
	for name, read := range prizes(planted) {
		data, err := read()
		if token := where.Find(data); err != nil || token != planted.Token {
			t.Errorf("%s: found %q in %q, %v", name, token, data, err)
		}
	}
	if where.HostUID == 0 || where.HostName == "" {
		t.Errorf("user %d and host %q", where.HostUID, where.HostName)
	}
	if info, err := os.Stat(filepath.Join(planted.Shared, "setuid")); err != nil || info.Mode()&os.ModeSetuid == 0 {
		t.Errorf("the setuid program: %v, %v", info, err)
	}
	lock, err := os.Open(filepath.Join(planted.Shared, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
		t.Error("nobody holds the lock")
	}
	if err := planted.Close(); err != nil {
		t.Fatal(err)
	}
	for name, read := range prizes(planted) {
		if data, err := read(); err == nil && !strings.HasPrefix(name, "file") {
			t.Errorf("%s is still there: %q", name, data)
		}
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		t.Errorf("somebody still holds the lock: %v", err)
	}
	if err := planted.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

// prizes are ways to read them, as the host's root.
func prizes(planted *prize.Planted) map[string]func() ([]byte, error) {
	where := planted.Map
	file := func(path string) func() ([]byte, error) { return func() ([]byte, error) { return os.ReadFile(path) } }
	socket := func(name string) func() ([]byte, error) {
		return func() ([]byte, error) {
			connection, err := net.Dial("unix", name)
			if err != nil {
				return nil, err
			}
			defer func() { _ = connection.Close() }()
			return io.ReadAll(connection)
		}
	}
	all := map[string]func() ([]byte, error){
		"file of the host":   file(where.HostFile),
		"file in the shared": file(filepath.Join(planted.Shared, "token")),
		"abstract socket":    socket("@" + where.HostSocket),
		"shared socket":      socket(filepath.Join(planted.Shared, "socket")),
		"environment":        file(filepath.Join("/proc", strconv.Itoa(where.HostPID), "environ")),
		"shared memory": func() ([]byte, error) {
			id, err := unix.SysvShmGet(where.HostMemory, 0, 0)
			if err != nil {
				return nil, err
			}
			data, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
			if err != nil {
				return nil, err
			}
			defer func() { _ = unix.SysvShmDetach(data) }()
			return append([]byte(nil), data[:128]...), nil
		},
	}
	if where.HostKey != "" {
		all["key"] = func() ([]byte, error) {
			id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", where.HostKey, 0)
			if err != nil {
				return nil, err
			}
			data := make([]byte, 128)
			_, err = unix.KeyctlBuffer(unix.KEYCTL_READ, id, data, 0)
			return data, err
		}
	}
	if where.CanaryDevice != "" {
		_, minor, _ := strings.Cut(where.CanaryDevice, ":")
		all["path of the canary"] = file(fmt.Sprintf("/sys/block/loop%s/loop/backing_file", minor))
	}
	return all
}
