// SPDX-License-Identifier: Apache-2.0

package loopservice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/losetup"
	"muster.dev/muster/internal/platform/blockfs"
	"muster.dev/muster/internal/platform/loopdevice"
)

const one, two = "i-0000000000000000a", "i-0000000000000000b"

// machines are machines in memory, with sockets in a directory.
type machines struct {
	dir string

	mutex    sync.Mutex
	boots    map[string]string
	contents []string // of files that were attached
	detached []int
	resized  []int
	failure  error
	refused  []string
	listens  map[string]int
	hang     map[string]chan struct{} // by machine
	listen   map[string]chan struct{} // as long as a machine hangs that is to have a socket
}

func (m *machines) Isolated() (map[string]string, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return maps.Clone(m.boots), nil
}

func (m *machines) boot(id, boot string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.boots[id] = boot
}

func (m *machines) socket(id string) string { return filepath.Join(m.dir, id) }

func (m *machines) Listen(id, socket string) (net.Listener, error) {
	if socket != losetup.Socket {
		return nil, errors.New(socket)
	}
	if hang := m.listen[id]; hang != nil {
		<-hang
		return nil, errors.New("it hangs")
	}
	if err := os.RemoveAll(m.socket(id)); err != nil {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.listens[id]++
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: m.socket(id), Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // as a provider's
	return listener, nil
}

func (m *machines) Loops(id string) ([]loopdevice.Device, error) {
	return []loopdevice.Device{{Number: int(id[len(id)-1]), Inode: 5, ReadOnly: true}}, nil
}

func (m *machines) AttachLoop(id string, file *os.File, readOnly bool) (loopdevice.Device, error) {
	m.mutex.Lock()
	hang := m.hang[id]
	m.mutex.Unlock()
	if hang != nil {
		<-hang
	}
	content, err := io.ReadAll(file)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.contents = append(m.contents, string(content))
	return loopdevice.Device{Number: 9, ReadOnly: readOnly}, errors.Join(err, m.failure)
}

func (m *machines) ResizeLoop(_ string, number int) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.resized = append(m.resized, number)
	return nil
}

func (m *machines) DetachLoop(_ string, number int) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.detached = append(m.detached, number)
	return m.failure
}

// look has a test read or change what the server's threads use.
func (m *machines) look(fn func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	fn()
}

func (m *machines) refuse(_ context.Context, id string, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.refused = append(m.refused, id+": "+err.Error())
}

// MountDevice returns the device itself.
func (m *machines) MountDevice(_ context.Context, _ string, device *os.File, fileSystem blockfs.Request) (*os.File, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.failure != nil {
		return nil, m.failure
	}
	if fileSystem.Options != "discard" {
		return nil, errors.New("another file system was asked for")
	}
	descriptor, err := unix.Dup(int(device.Fd()))
	return os.NewFile(uintptr(descriptor), "mount"), err
}

func (m *machines) CheckLoops(string) error { return nil }

// start starts the service for two machines, and others that hang.
func start(t *testing.T, hanging ...string) *machines {
	t.Helper()
	m := &machines{dir: t.TempDir(), boots: map[string]string{one: "1", two: "1"}, hang: map[string]chan struct{}{}, listens: map[string]int{}}
	m.listen = map[string]chan struct{}{}
	for _, id := range hanging {
		m.boots[id], m.listen[id] = "1", make(chan struct{})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&Server{Machines: m, Log: slog.New(slog.DiscardHandler), Refused: m.refuse}).Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return m
}

func file(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRequests(t *testing.T) {
	m := start(t)
	ask := func(r losetup.Request, f *os.File) ([]losetup.Device, error) {
		return losetup.Ask(t.Context(), m.socket(one), r, f)
	}
	if got, err := ask(losetup.Request{Op: losetup.Attach, ReadOnly: true}, file(t)); err != nil || len(got) != 1 || got[0] != (losetup.Device{Number: 9, ReadOnly: true}) {
		t.Errorf("attached %+v, %v", got, err)
	}
	m.look(func() {
		if !slices.Equal(m.contents, []string{"hello"}) {
			t.Errorf("attached files have %q", m.contents)
		}
	})
	if got, err := ask(losetup.Request{Op: losetup.List}, nil); err != nil || !slices.Equal(got, []losetup.Device{{Number: 'a', Inode: 5, ReadOnly: true}}) {
		t.Errorf("lists %+v, %v", got, err)
	}
	_, err := ask(losetup.Request{Op: losetup.Detach, Number: 7}, nil)
	m.look(func() {
		if err != nil || !slices.Equal(m.detached, []int{7}) {
			t.Errorf("detached %v, %v", m.detached, err)
		}
	})
	_, err = ask(losetup.Request{Op: losetup.Resize, Number: 8}, nil)
	m.look(func() {
		if err != nil || !slices.Equal(m.resized, []int{8}) {
			t.Errorf("resized %v, %v", m.resized, err)
		}
	})
	if _, err := ask(losetup.Request{Op: losetup.Attach}, nil); err == nil || !strings.Contains(err.Error(), "0 open files") {
		t.Error(err)
	}
	m.look(func() { m.failure = errors.New("it may not") })
	if _, err := ask(losetup.Request{Op: losetup.Detach, Number: 8}, nil); err == nil || err.Error() != "it may not" {
		t.Error(err)
	}
	if _, err := ask(losetup.Request{Op: losetup.Attach}, file(t)); err == nil || err.Error() != "it may not" {
		t.Error(err)
	}
	m.look(func() {
		if want := []string{one + ": it may not"}; !slices.Equal(m.refused, want) {
			t.Errorf("refused %q, want %q", m.refused, want)
		}
	})
}

// A mount comes open with the answer, and an error with its number.
func TestMount(t *testing.T) {
	m := start(t)
	ask := func() (*os.File, error) {
		return losetup.AskMount(t.Context(), m.socket(one), file(t), blockfs.Request{Type: "ext4", Options: "discard"})
	}
	mount, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(mount)
	if err := errors.Join(err, mount.Close()); err != nil || string(content) != "hello" {
		t.Errorf("what came has %q, %v", content, err)
	}
	for _, c := range []struct {
		failure error
		want    unix.Errno
	}{{fmt.Errorf("damaged: %w", unix.EUCLEAN), unix.EUCLEAN}, {errors.New("no number"), unix.EPERM}} {
		m.look(func() { m.failure = c.failure })
		if _, err := ask(); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.failure.Error()) {
			t.Errorf("%v, want %v with its number", err, c.failure)
		}
	}
}

// A message that is not a request gets an answer with the reason, and nothing is done.
func TestHostileRequests(t *testing.T) {
	m := start(t)
	if _, err := losetup.Ask(t.Context(), m.socket(one), losetup.Request{Op: losetup.List}, nil); err != nil { // it listens
		t.Fatal(err)
	}
	f := file(t)
	for name, c := range map[string]struct {
		line  string
		files int
		why   string
	}{
		"two files":       {`{"op":"attach"}` + "\n", 2, "open file"},
		"five files":      {`{"op":"attach"}` + "\n", 5, "more than one open file"},
		"a file too many": {`{"op":"list"}` + "\n", 1, "1 open files"},
		"no line":         {`{"op":"list"}`, 0, "before its line"},
		"a long line":     {strings.Repeat(" ", 4096), 0, "more than 1024 bytes"},
		"rubbish":         {"\x00\n", 0, "not understood"},
	} {
		connection, err := net.Dial("unix", m.socket(one))
		if err != nil {
			t.Fatal(err)
		}
		var rights []byte
		if c.files > 0 {
			descriptors := make([]int, c.files)
			for i := range descriptors {
				descriptors[i] = int(f.Fd())
			}
			rights = unix.UnixRights(descriptors...)
		}
		stream := connection.(*net.UnixConn)
		if _, _, err := stream.WriteMsgUnix([]byte(c.line), rights, nil); err != nil {
			t.Fatal(err)
		}
		if err := stream.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(stream)
		if _ = stream.Close(); !strings.Contains(string(answer), c.why) {
			t.Errorf("%s: answers %q, want %q", name, answer, c.why)
		}
	}
	m.look(func() {
		if len(m.contents) > 0 {
			t.Errorf("attached %q", m.contents)
		}
	})
}

// A machine whose requests all hang delays no other, and gets no more of the service than it may.
func TestOneHangs(t *testing.T) {
	m := start(t)
	hang := make(chan struct{})
	m.mutex.Lock()
	m.hang[one] = hang
	m.mutex.Unlock()
	var asking sync.WaitGroup
	for range 2 * maxConnections {
		f := file(t)
		asking.Go(func() { _, _ = losetup.Ask(t.Context(), m.socket(one), losetup.Request{Op: losetup.Attach}, f) })
	}
	for range 3 {
		if _, err := losetup.Ask(t.Context(), m.socket(two), losetup.Request{Op: losetup.List}, nil); err != nil {
			t.Error(err)
		}
	}
	close(hang)
	asking.Wait()
}

// Machines that hang while they are to have their sockets delay no other: neither one that is to have its own, nor one
// that boots again.
func TestListenHangs(t *testing.T) {
	var hanging []string
	for n := range 8 {
		hanging = append(hanging, fmt.Sprintf("i-%017x", n+0xc0))
	}
	m := start(t, hanging...)
	defer func() {
		for _, id := range hanging {
			close(m.listen[id])
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, id := range []string{one, two} {
		if _, err := losetup.Ask(ctx, m.socket(id), losetup.Request{Op: losetup.List}, nil); err != nil {
			t.Error(err)
		}
	}
}

// A machine that is refused without end does not fill the log.
func TestFloodOfRefusals(t *testing.T) {
	m := &machines{dir: t.TempDir(), boots: map[string]string{one: "1"}, hang: map[string]chan struct{}{}, listens: map[string]int{}}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&Server{Machines: m, Log: slog.New(slog.NewTextHandler(log, nil)), Refused: m.refuse}).Start(ctx)
	}()
	const requests = 1000
	for range requests {
		if _, err := losetup.Ask(ctx, m.socket(one), losetup.Request{Op: "other"}, nil); err == nil {
			t.Fatal("it was not refused")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	said, err := os.ReadFile(log.Name())
	if lines := strings.Count(string(said), "\n"); err != nil || lines == 0 || lines > requests/2 {
		t.Errorf("%v, %d lines:\n%.1000s", err, lines, said)
	}
}

// A machine that boots again is listened to by a new socket.
func TestReboot(t *testing.T) {
	m := start(t)
	if _, err := losetup.Ask(t.Context(), m.socket(one), losetup.Request{Op: losetup.List}, nil); err != nil {
		t.Fatal(err)
	}
	m.boot(one, "2")
	for deadline := time.Now().Add(10 * time.Second); ; {
		m.mutex.Lock()
		listens := m.listens[one]
		m.mutex.Unlock()
		if listens == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not listen again")
		}
		<-time.After(10 * time.Millisecond)
	}
	if _, err := losetup.Ask(t.Context(), m.socket(one), losetup.Request{Op: losetup.List}, nil); err != nil {
		t.Error(err)
	}
}
