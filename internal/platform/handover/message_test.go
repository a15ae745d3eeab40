// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// pair is both ends of a connection between two processes, which here are one.
func pair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		connection, err := net.FileConn(file)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		ends[i] = connection.(*net.UnixConn) //nolint:forcetypeassert // of a unix socket
	}
	return ends[0], ends[1]
}

// descriptors counts those that this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// pipe is something open.
func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return read, write
}

// Messages arrive one by one, each with its descriptor, which no program that is started gets.
func TestMessages(t *testing.T) {
	a, b := pair(t)
	_, write := pipe(t)
	for _, name := range []string{"first\n", "second\n"} {
		if err := send(a, name, write); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(a, "all\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first\n", "second\n"} {
		text, file, err := receive(b)
		if err != nil || text != want || file == nil {
			t.Fatalf("%q, %v, %v", text, file, err)
		}
		if flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("programs get %s: %v", want, err)
		}
		_ = file.Close()
	}
	if text, file, err := receive(b); text != "all\n" || file != nil || err != nil {
		t.Errorf("%q, %v, %v", text, file, err)
	}
	_ = a.Close()
	if _, _, err := receive(b); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestMessagesThatAreRefused(t *testing.T) {
	a, b := pair(t)
	read, write := pipe(t)
	for _, text := range []string{"", strings.Repeat("x", maxText+1)} {
		if err := send(a, text, write); err == nil {
			t.Errorf("a message of %d bytes is sent", len(text))
		}
	}
	before := descriptors(t)
	for _, files := range [][]*os.File{{read, write}, {read, write, read}} { // two arrive, and more are cut off
		rights := make([]int, 0, len(files))
		for _, file := range files {
			rights = append(rights, int(file.Fd()))
		}
		if _, _, err := a.WriteMsgUnix([]byte("many\n"), unix.UnixRights(rights...), nil); err != nil {
			t.Fatal(err)
		}
		if text, file, err := receive(b); err == nil || file != nil || !strings.Contains(err.Error(), "other descriptors than one") {
			t.Errorf("%q, %v, %v", text, file, err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, and %d were", after, before)
	}
	closed, _ := pipe(t)
	_ = closed.Close()
	if err := send(a, "closed\n", closed); err == nil {
		t.Error("what is closed is sent")
	}
}

func TestPeerAndAge(t *testing.T) {
	a, _ := pair(t)
	if pid, err := peer(a); err != nil || pid != os.Getpid() {
		t.Errorf("process %d, %v", pid, err)
	}
	_ = a.Close()
	if _, err := peer(a); err == nil {
		t.Error("a closed connection has a peer")
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	for pid, want := range map[int]bool{os.Getppid(): true, os.Getpid(): false, child.Process.Pid: false, 1 << 30: false} {
		if got := older(pid); got != want {
			t.Errorf("process %d is older: %v", pid, got)
		}
	}
}

// FuzzReceiveAll has the serving process say anything.
func FuzzReceiveAll(f *testing.F) {
	for _, text := range []string{"", all, later, "listener\n", "x\nall\n", strings.Repeat("x", maxText+1)} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, with bool) {
		a, b := pair(t)
		path := filepath.Join(t.TempDir(), "file")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		var rights []byte
		if with {
			rights = unix.UnixRights(int(file.Fd()))
		}
		before := descriptors(t)
		go func() {
			_, _, _ = a.WriteMsgUnix(text, rights, nil)
			_, _ = io.WriteString(a, all)
			_ = a.CloseWrite()
		}()
		sockets, err := Config{Patience: Patience}.receiveAll(b)
		if err != nil && sockets != nil {
			t.Errorf("%v beside %v", sockets, err)
		}
		Close(sockets)
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors are open, and %d were", after, before)
		}
	})
}
