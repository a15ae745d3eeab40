// SPDX-License-Identifier: Apache-2.0

package proxyheader_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/internal/platform/proxyheader"
)

// waiting is how many connections may have sent no header, or wait to be accepted.
const waiting = 256

// at listens on a socket, and returns a way to connect to it.
func at(t *testing.T) (*proxyheader.Listener, func() net.Conn) {
	t.Helper()
	inner, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	l := proxyheader.NewListener(inner, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = l.Close() })
	return l, func() net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

func send(t *testing.T, to io.Writer, more string) {
	t.Helper()
	if err := proxyheader.Write(to, header); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(to, more); err != nil {
		t.Fatal(err)
	}
}

// accept fails if a connection takes long.
func accept(t *testing.T, l net.Listener) *proxyheader.Conn {
	t.Helper()
	began := time.Now()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if took := time.Since(began); took > time.Second {
		t.Fatalf("a connection was accepted after %s", took)
	}
	named, ok := c.(*proxyheader.Conn)
	if !ok || named.Header != header || named.RemoteAddr().String() != machine.String() {
		t.Fatalf("a connection of %s is accepted: %#v", c.RemoteAddr(), c)
	}
	return named
}

// isClosed reports whether the other side closes a connection within a moment.
func isClosed(t *testing.T, c net.Conn, moment time.Duration) bool {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(moment)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func TestAccept(t *testing.T) {
	t.Parallel()
	l, dial := at(t)
	send(t, dial(), "hello")
	c := accept(t, l)
	if got, err := io.ReadAll(io.LimitReader(c, 5)); err != nil || string(got) != "hello" {
		t.Errorf("behind the header is %q: %v", got, err)
	}
	_, _ = dial().Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	send(t, dial(), "")
	accept(t, l)
}

// A connection without a header delays no other, and is closed.
func TestSilent(t *testing.T) {
	t.Parallel()
	l, dial := at(t)
	silent := dial()
	halfway := dial()
	if _, err := halfway.Write([]byte("\r\n\r\n\x00")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		send(t, dial(), "")
		accept(t, l)
	}
	for what, c := range map[string]net.Conn{"nothing": silent, "half of a header": halfway} {
		if !isClosed(t, c, 10*time.Second) {
			t.Errorf("a connection with %s stays open", what)
		}
	}
}

// When too many have sent no header, the next one takes the place of the oldest.
func TestManySilent(t *testing.T) {
	t.Parallel()
	l, dial := at(t)
	var silent []net.Conn
	for range waiting {
		silent = append(silent, dial())
	}
	send(t, dial(), "")
	accept(t, l)
	if !isClosed(t, silent[0], time.Second) {
		t.Error("the oldest is not closed")
	}
	if isClosed(t, silent[waiting-1], 10*time.Millisecond) {
		t.Error("the youngest is closed")
	}
}

// Connections with a header wait until they are accepted, however many there are.
func TestNobodyAccepts(t *testing.T) {
	t.Parallel()
	l, dial := at(t)
	send(t, dial(), "")
	accept(t, l) // it reads from now on
	var dialing sync.WaitGroup
	defer dialing.Wait()
	dialing.Go(func() {
		for range 2 * waiting {
			send(t, dial(), "")
		}
	})
	time.Sleep(100 * time.Millisecond) //nolint:forbidigo // nothing tells that a listener has more than it takes
	for range 2 * waiting {
		accept(t, l)
	}
}

// failing is a listener that is out of files once.
type failing struct {
	net.Listener
	failed sync.Once
}

var errFiles = errors.New("too many open files")

func (f *failing) Accept() (c net.Conn, err error) {
	f.failed.Do(func() { err = errFiles })
	if err != nil {
		return nil, err
	}
	return f.Listener.Accept()
}

func TestErrors(t *testing.T) {
	t.Parallel()
	inner := make(pipes)
	l := proxyheader.NewListener(&failing{Listener: inner}, slog.New(slog.DiscardHandler))
	if _, err := l.Accept(); !errors.Is(err, errFiles) {
		t.Fatalf("Accept: %v", err)
	}
	client, server := net.Pipe()
	go func() { inner <- server }()
	go func() { _ = proxyheader.Write(client, header) }()
	accept(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close, Accept: %v", err)
	}
}

// pipes is a listener whose connections are those that a test makes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return nil }

// Nothing is left when the listener has been closed: a bubble waits for all of it.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := make(pipes)
		l := proxyheader.NewListener(inner, slog.New(slog.DiscardHandler))
		ends := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			ends <- err
		}()
		silent, of := net.Pipe()
		inner <- of
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ends; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
		began := time.Now()
		if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(began) > 2*time.Second {
			t.Errorf("a connection without a header stays open for %s: %v", time.Since(began), err)
		}
	})
}
