// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// connectAs connects to a socket as another user of the host.
func connectAs(user uintptr, path string) (*os.File, error) {
	type answer struct {
		file *os.File
		err  error
	}
	done := make(chan answer, 1)
	go host.OnThread(func() {
		const same = ^uintptr(0)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, user, same); errno != 0 { // of this thread alone
			done <- answer{nil, errno}
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		}
		done <- answer{os.NewFile(uintptr(fd), path), err}
	})
	a := <-done
	return a.file, a.err
}

// Users that the server is told of may connect where they see the socket's directory, and no others.
func TestPeers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root becomes other users")
	}
	s, _ := serverOf(t, &backend{}, time.Hour)
	s.config.Peers = func(user uint32) bool { return user == 1234 }
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "identity.sock")
	listener, err := s.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 4)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- connection
		}
	}()
	for user, may := range map[uintptr]bool{0: true, 1234: true, 1235: false} {
		file, err := connectAs(user, path)
		if err != nil {
			t.Fatalf("user %d: %v", user, err)
		}
		if may {
			_ = (<-accepted).Close()
		}
		if _, err := file.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("user %d: %v", user, err)
		}
		_ = file.Close()
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if connection, open := <-accepted; open {
		t.Errorf("one more was let in: %v", connection)
	}
}
