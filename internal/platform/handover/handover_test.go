// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/process"
)

const generous = time.Minute // that a test has with a busy computer

// log is one that a test reads.
type log struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *log) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(line)
}

func (l *log) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// serving is a process that serves at a port and offers it to the next one.
type serving struct {
	Config
	port     net.Listener
	changed  atomic.Bool // its sockets are others by now, so that a commit fails
	commits  func()      // called by each commit
	released atomic.Bool
	ended    chan error
	log      *log
	end      context.CancelFunc
}

// path is that of a socket at which nobody listens yet.
func path(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "next")
}

func config(path string) Config {
	return Config{Path: path, Patience: Patience, Log: slog.New(slog.DiscardHandler)}
}

// serve serves until the test ends, or the next process has taken over.
func serve(t *testing.T, change func(*serving)) *serving {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &serving{Config: config(path(t)), port: port, ended: make(chan error, 1), log: &log{}, commits: func() {}}
	s.Log = slog.New(slog.NewTextHandler(s.log, nil))
	if change != nil {
		change(s)
	}
	door, err := net.Listen("unix", s.Path)
	if err != nil {
		t.Fatal(err)
	}
	s.offer(t, door)
	return s
}

func (s *serving) offer(t *testing.T, door net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s.end = cancel
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.ended <- s.Offer(ctx, door, func() (map[string]syscall.Conn, func() error) {
			return map[string]syscall.Conn{"port": s.port.(*net.TCPListener)}, s.commit //nolint:forcetypeassert // a TCP listener
		}, func() {
			_ = s.port.Close()
			s.released.Store(true)
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-over
		_ = s.port.Close()
	})
}

func (s *serving) commit() error {
	s.commits()
	if s.changed.Load() {
		return errors.New("it listens on others")
	}
	return nil
}

// stays fails if a process has given anything away.
func (s *serving) stays(t *testing.T, after string) {
	t.Helper()
	select {
	case err := <-s.ended:
		t.Fatalf("after %s: %v", after, err)
	default:
	}
	if connection, err := net.Dial("tcp", s.port.Addr().String()); err != nil || s.released.Load() {
		t.Fatalf("after %s: %v", after, err)
	} else {
		_ = connection.Close()
	}
}

// take takes over, and returns the listener.
func take(t *testing.T, c Config) (port net.Listener, err error) {
	t.Helper()
	err = c.Take(t.Context(), func(sockets map[string]*os.File) (err error) {
		defer Close(sockets)
		port, err = net.FileListener(sockets["port"])
		return err
	})
	if err != nil && port != nil {
		_ = port.Close()
	}
	return port, err
}

// connect connects as a next process does.
func (s *serving) connect(t *testing.T) *net.UnixConn {
	t.Helper()
	connection, err := net.Dial("unix", s.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection.(*net.UnixConn) //nolint:forcetypeassert // of a unix socket
}

// A socket goes from process to process, with connections that wait in its queue. A lock that the processes share is released
// before the next one serves, and no descriptor is left over.
func TestTakeAndOffer(t *testing.T) {
	s := serve(t, nil)
	waiting, err := net.Dial("tcp", s.port.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = waiting.Close() }()
	before := descriptors(t)
	port, err := take(t, config(s.Path))
	if err != nil {
		t.Fatal(err)
	}
	if !s.released.Load() {
		t.Error("both serve")
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	accepted, err := port.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = accepted.Close()
	if err := config(s.Path).Take(t.Context(), nil); !errors.Is(err, ErrNobody) {
		t.Errorf("afterwards: %v", err)
	}
	_ = port.Close()
	if after := descriptors(t); after > before-2 { // the port and the door are closed
		t.Errorf("%d descriptors are open, and %d were", after, before)
	}
}

// A next process that does not want the sockets, dies, says something else or is too slow leaves the serving one as it was,
// and hears no gone; the log says it once.
func TestNextProcessesThatFail(t *testing.T) {
	s := serve(t, func(s *serving) { s.Patience = 200 * time.Millisecond })
	unsuited := errors.New("the port is another")
	err := config(s.Path).Take(t.Context(), func(sockets map[string]*os.File) error {
		Close(sockets)
		return unsuited
	})
	if !errors.Is(err, unsuited) || errors.Is(err, ErrLost) {
		t.Error(err)
	}
	s.stays(t, "a next process without a use for the sockets")
	for _, say := range []string{"", "accept", "nothing\n", accepts[:3], "slow"} {
		next := s.connect(t)
		sockets, err := s.receiveAll(next)
		if err != nil {
			t.Fatal(err)
		}
		Close(sockets)
		if say == "slow" {
			if err := next.SetDeadline(time.Now().Add(generous)); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(next); len(got) > 0 || err != nil {
				t.Errorf("before it accepts: %q, %v", got, err)
			}
			if err := s.accept(next); err == nil {
				t.Error("one that was too slow serves")
			}
		} else {
			_, _ = io.WriteString(next, say)
			_ = next.CloseWrite()
			if got, err := io.ReadAll(next); len(got) > 0 || err != nil {
				t.Errorf("after %q: %q, %v", say, got, err)
			}
		}
		s.stays(t, say)
	}
	port, err := take(t, config(s.Path))
	if err != nil {
		t.Fatal(err)
	}
	_ = port.Close()
	if said := s.log.String(); strings.Count(said, "the next process has not taken over") != 1 {
		t.Errorf("the log says %s", said)
	}
}

// A handover that is cut short at the serving process, whatever the next one has said, is not one: else both would serve.
func TestServingProcessesThatFail(t *testing.T) {
	socket := path(t)
	door, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = door.Close() }()
	_, write := pipe(t)
	before := descriptors(t)
	for name, serve := range map[string]func(next *net.UnixConn) error{
		"at once":           func(*net.UnixConn) error { return nil },
		"with some sockets": func(next *net.UnixConn) error { return send(next, "port\n", write) },
		"with all sockets": func(next *net.UnixConn) error {
			sent := send(next, "port\n", write)
			_, err := io.WriteString(next, all)
			return errors.Join(sent, err)
		},
		"when it was accepted": func(next *net.UnixConn) error {
			_, err := io.WriteString(next, all)
			return errors.Join(err, hear(next, accepts))
		},
	} {
		ended := make(chan error, 1)
		go func() {
			ended <- config(socket).Take(t.Context(), func(sockets map[string]*os.File) error { Close(sockets); return nil })
		}()
		next, err := door.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := serve(next.(*net.UnixConn)); err != nil { //nolint:forcetypeassert // of a unix socket
			t.Errorf("%s: %v", name, err)
		}
		_ = next.Close()
		if err := <-ended; !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, answer := range []string{later, "what?\n", gone} {
		ended := make(chan error, 1)
		go func() { ended <- config(socket).Take(t.Context(), func(map[string]*os.File) error { return nil }) }()
		next, err := door.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(next, answer)
		if err := <-ended; err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrLater) != (answer == later) {
			t.Errorf("after %q: %v", answer, err)
		}
		_ = next.Close()
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, and %d were", after, before)
	}
}

// The sockets of a process may change while they are offered: then nothing is handed over, and the next process asks again.
func TestSocketsThatChange(t *testing.T) {
	s := serve(t, func(s *serving) { s.changed.Store(true) })
	if _, err := take(t, config(s.Path)); !errors.Is(err, ErrLost) {
		t.Errorf("the next process: %v", err)
	}
	s.stays(t, "a change")
	s.changed.Store(false)
	port, err := take(t, config(s.Path))
	if err != nil {
		t.Fatal(err)
	}
	_ = port.Close()
}

// Of many next processes a single one gets the sockets, beside others that say nothing, and no later one finds anything.
func TestManyNextProcesses(t *testing.T) {
	s := serve(t, nil)
	for range 3 {
		s.connect(t)
	}
	const many = 16
	var won, lost atomic.Int32
	var nexts sync.WaitGroup
	began := time.Now()
	for range many {
		nexts.Go(func() {
			port, err := take(t, config(s.Path))
			switch {
			case err == nil:
				won.Add(1)
				_ = port.Close()
			case errors.Is(err, ErrLost), errors.Is(err, ErrNobody):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	nexts.Wait()
	if err := <-s.ended; err != nil || won.Load() != 1 || lost.Load() != many-1 {
		t.Errorf("%d have it and %d do not: %v", won.Load(), lost.Load(), err)
	}
	if took := time.Since(began); took > Patience {
		t.Errorf("one that says nothing keeps others for %v", took)
	}
}

// Of two next processes that accept at the same moment one gets the sockets, and the other is told nothing.
func TestTwoThatAcceptAtOnce(t *testing.T) {
	committing, goes := make(chan struct{}, 2), make(chan struct{})
	s := serve(t, func(s *serving) {
		s.commits = func() {
			committing <- struct{}{}
			<-goes
		}
	})
	first, second := s.connect(t), s.connect(t)
	for _, next := range []*net.UnixConn{first, second} {
		sockets, err := s.receiveAll(next)
		if err != nil {
			t.Fatal(err)
		}
		Close(sockets)
	}
	if _, err := io.WriteString(first, accepts); err != nil {
		t.Fatal(err)
	}
	<-committing
	if _, err := io.WriteString(second, accepts); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- hear(second, gone) }()
	select {
	case err := <-over:
		if !errors.Is(err, io.EOF) {
			t.Errorf("the second: %v", err)
		}
	case <-committing:
		t.Error("both get the sockets")
	}
	close(goes)
	if err := errors.Join(hear(first, gone), <-s.ended); err != nil {
		t.Error(err)
	}
}

// An offer ends with its context, whoever is being asked, and goes on without file descriptors.
func TestOffersThatEnd(t *testing.T) {
	s := serve(t, nil)
	silent := s.connect(t)
	if _, err := s.receiveAll(silent); err != nil {
		t.Fatal(err)
	}
	s.end()
	if err := <-s.ended; err != nil || s.released.Load() {
		t.Error(err)
	}

	poor := &once{failure: unix.EMFILE, asked: make(chan struct{}), closed: make(chan struct{})}
	s.offer(t, poor)
	select {
	case err := <-s.ended:
		t.Fatalf("without a descriptor it ends: %v", err)
	case <-poor.asked:
	}
	_ = poor.Close()
	if err := <-s.ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("of a door that was closed: %v", err)
	}
}

// once is a listener that fails once, and is silent then until it is closed.
type once struct {
	net.Listener
	failure error
	asked   chan struct{}
	closed  chan struct{}
	close   sync.Once
}

func (o *once) Accept() (net.Conn, error) {
	if err := o.failure; err != nil {
		o.failure = nil
		return nil, err
	}
	close(o.asked)
	<-o.closed
	return nil, net.ErrClosed
}

func (o *once) Close() error {
	o.close.Do(func() { close(o.closed) })
	return nil
}

// listenAndHang is a serving process that answers nobody.
func listenAndHang(ctx context.Context, path string) error {
	if _, err := new(net.ListenConfig).Listen(ctx, "unix", path); err != nil {
		return err
	}
	select {}
}

// role starts a process of a handover.
func role(t *testing.T, name, path string) (*exec.Cmd, *bytes.Buffer, *log, <-chan struct{}) {
	t.Helper()
	cmd, said, written := exec.Command(os.Args[0]), &bytes.Buffer{}, &log{}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), envRole+"="+name+" "+path), said, written
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(over)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-over
	})
	return cmd, said, written, over
}

// A serving process that does not answer is killed by a next one that was started after it, which says so, and by no other.
func TestProcessesThatHang(t *testing.T) {
	socket := path(t)
	hangs, _, _, ended := role(t, "hangs", socket)
	for began := time.Now(); ; <-time.After(10 * time.Millisecond) {
		if connection, err := net.Dial("unix", socket); err == nil {
			_ = connection.Close()
			break
		} else if time.Since(began) > generous {
			t.Fatal(err)
		}
	}
	elder := config(socket) // this process was started before it
	elder.Patience = 100 * time.Millisecond
	if err := elder.Take(t.Context(), nil); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "is not to be ended") {
		t.Errorf("the elder process: %v", err)
	}
	if _, err := process.ReadStat(filepath.Join("/proc", strconv.Itoa(hangs.Process.Pid))); err != nil {
		t.Errorf("it was ended by an elder process: %v", err)
	}
	_, said, log, over := role(t, "next", socket)
	<-over
	<-ended
	if got := said.String(); got != ErrLost.Error()+"\n" {
		t.Errorf("the next process: %q", got)
	}
	if got := log.String(); strings.Count(got, "does not hand over, and is ended") != 1 {
		t.Errorf("its log: %s", got)
	}
	if status, ok := hangs.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("it was not ended: %v", hangs.ProcessState)
	}
}

// A process that has only one socket says nothing but that, as fronts did before there was this package: the next one
// hears the next message at once.
func TestOnlySocket(t *testing.T) {
	t.Parallel()
	s := serve(t, func(s *serving) { s.Only = "port" })
	connection, err := net.Dial("unix", s.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	next := connection.(*net.UnixConn) //nolint:forcetypeassert // of a unix socket
	if text, file, err := receive(next); err != nil || text != "port\n" || file == nil || file.Close() != nil {
		t.Fatalf("it says %q, %v", text, err)
	}
	if _, err := io.WriteString(next, accepts); err != nil {
		t.Fatal(err)
	}
	if err := hear(next, gone); err != nil {
		t.Error(err)
	}

	again := serve(t, func(s *serving) { s.Only = "port" })
	taken := 0
	if err := again.Take(t.Context(), func(sockets map[string]*os.File) error {
		taken = len(sockets)
		Close(sockets)
		return nil
	}); err != nil || taken != 1 {
		t.Errorf("%d sockets, %v", taken, err)
	}
}
