// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/plane/frontservers"
)

// silent is a server that ends connections without a word once it is told to, as a kernel does for a process that is
// being killed; it is a server like others until then, so that probes find it ready.
type silent struct {
	address netip.AddrPort
	silent  atomic.Bool
	ended   atomic.Int64
	finish  func(net.Conn) // ends a connection
}

func newSilent(t *testing.T, behind *backend, finish func(net.Conn)) *silent {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &silent{address: netip.MustParseAddrPort(listener.Addr().String()), finish: finish}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			if s.silent.Load() {
				s.ended.Add(1)
				finish(c)
				continue
			}
			server, err := dial(t.Context(), behind.address)
			if err != nil {
				reset(c)
				continue
			}
			go join(t.Context(), c.(*net.TCPConn), server, func() *net.TCPConn { return nil }, func() {}) //nolint:forcetypeassert // of a TCP listener
		}
	}()
	return s
}

// endings are how a killed process's connections end: with a reset where it had not accepted the connection, or had not
// read all bytes, and with an end otherwise, also before the client has said anything.
func endings(t *testing.T, test func(t *testing.T, finish func(net.Conn))) {
	t.Helper()
	t.Run("reset", func(t *testing.T) { test(t, reset) })
	t.Run("at once", func(t *testing.T) { test(t, func(c net.Conn) { _ = c.Close() }) })
	t.Run("unread", func(t *testing.T) {
		test(t, func(c net.Conn) {
			<-time.After(5 * time.Millisecond)
			_ = c.Close()
		})
	})
	t.Run("read", func(t *testing.T) {
		test(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, maxSaid))
			_ = c.Close()
		})
	})
}

// repeated is how often a front passed a connection on anew.
func repeated(t *testing.T, f *Front) float64 {
	t.Helper()
	var m dto.Metric
	if err := f.metrics.repeated.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.Counter.GetValue()
}

// A connection to a server that goes without a word is another server's, and the client sees nothing of it.
func TestServerThatGoesWithoutAWord(t *testing.T) {
	endings(t, func(t *testing.T, finish func(net.Conn)) {
		t.Helper()
		a := newBackend(t, "a")
		s := newSilent(t, newBackend(t, "s"), finish)
		w := newWorld(t, frontservers.Server{Address: s.address}, frontservers.Server{Address: a.address})
		w.every = time.Hour // no probe tells of it first
		f, _, _ := w.start(t)
		soon(t, "both are ready", func() bool { return f.isReady(a.address) && f.isReady(s.address) })
		s.silent.Store(true)
		for range 10 {
			if got, err := w.ask(); got != "a" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if n, again := s.ended.Load(), repeated(t, f); n == 0 || again == 0 {
			t.Errorf("the server ended %d connections, %v were repeated", n, again)
		}
	})
}

// A connection waits for the only server to come back, but not for one that does not want it.
func TestOnlyServerThatGoesWithoutAWord(t *testing.T) {
	endings(t, func(t *testing.T, finish func(net.Conn)) {
		t.Helper()
		s := newSilent(t, newBackend(t, "s"), finish)
		w := newWorld(t, frontservers.Server{Address: s.address})
		w.every = time.Hour
		f, _, _ := w.start(t)
		soon(t, "it is ready", func() bool { return f.isReady(s.address) })
		s.silent.Store(true)
		back := time.AfterFunc(retryEvery, func() { s.silent.Store(false) })
		defer back.Stop()
		if got, err := w.ask(); got != "s" {
			t.Fatalf("a server that is back: %q, %v", got, err)
		}
		s.silent.Store(true)
		before := repeated(t, f)
		if got, err := w.ask(); err == nil {
			t.Errorf("a server that answers nothing: %q", got)
		}
		if n := repeated(t, f) - before; n != maxServers-1 {
			t.Errorf("the server was asked %v times more", n)
		}
	})
}

// A client's words are told once after a server has answered, and once if they are too many.
func TestNobodyIsToldTwice(t *testing.T) {
	other := func() *net.TCPConn {
		t.Error("another server is asked for")
		return nil
	}
	for name, test := range map[string]func(t *testing.T, client, server *net.TCPConn){
		"answered": func(t *testing.T, client, server *net.TCPConn) {
			t.Helper()
			said := []byte("hello")
			if _, err := client.Write(said); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(server, said); err != nil {
				t.Fatal(err)
			}
			if _, err := server.Write([]byte("1")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(client, said[:1]); err != nil {
				t.Fatal(err)
			}
			reset(server)
		},
		"too much": func(t *testing.T, client, server *net.TCPConn) {
			t.Helper()
			said := make([]byte, maxSaid+1)
			if _, err := client.Write(said); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(server, said); err != nil {
				t.Fatal(err)
			}
			reset(server)
		},
		"ended": func(t *testing.T, client, server *net.TCPConn) {
			t.Helper()
			if _, err := client.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if err := client.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(server); err != nil {
				t.Fatal(err)
			}
			reset(server)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, a := pipe(t)
			b, server := pipe(t)
			over := make(chan struct{})
			go func() {
				defer close(over)
				join(t.Context(), a, b, other, func() {})
			}()
			_ = client.SetDeadline(time.Now().Add(20 * time.Second))
			_ = server.SetDeadline(time.Now().Add(20 * time.Second))
			test(t, client, server)
			if got, err := io.ReadAll(client); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, net.ErrClosed) {
				t.Errorf("%q, %v", got, err)
			}
			<-over
		})
	}
}
