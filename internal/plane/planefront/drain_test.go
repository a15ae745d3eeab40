// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/platform/socketdir"
)

// tardy is a listener whose last connection comes when it is closed already, as a connection does that was accepted just
// before.
type tardy struct {
	*net.TCPListener
	closed chan struct{}
	once   sync.Once
	last   *net.TCPConn
}

func (l *tardy) Accept() (net.Conn, error) {
	c, err := l.TCPListener.Accept()
	if err == nil || l.last == nil {
		return c, err
	}
	<-l.closed
	<-time.After(50 * time.Millisecond) // longer than a front takes to see that no connection is open
	c, l.last = l.last, nil
	return c, nil
}

func (l *tardy) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.TCPListener.Close()
}

// A connection that is accepted while the listener is given away is served like any other, though no connection was open
// at that moment.
func TestTheLastConnection(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	listener, err := net.Listen("tcp", w.config.Listen.String())
	if err != nil {
		t.Fatal(err)
	}
	client, server := pipe(t)
	f, err := New(w.config)
	if err := errors.Join(err, socketdir.MakeDir(w.config.Socket)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- f.work(t.Context(), &tardy{TCPListener: listener.(*net.TCPListener), closed: make(chan struct{}), last: server})
	}()
	soon(t, "the server is ready", func() bool { return f.isReady(a.address) })
	next, _, _ := w.start(t)
	soon(t, "the next front serves", func() bool { return next.isReady(a.address) })
	if got, err := w.askOver(client); got != "a" {
		t.Errorf("the last connection: %q, %v", got, err)
	}
	_ = client.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A front that is told to end while it waits for connections does not say that their day is over.
func TestEndWhileConnectionsAreKept(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	var log remembered
	w.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	old, end, ended := w.start(t)
	soon(t, "the server is ready", func() bool { return old.isReady(a.address) })
	kept, err := net.Dial("tcp", w.config.Listen.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	soon(t, "the connection is passed on", func() bool { return old.pool.snapshot()[0].open == 1 })
	w.start(t)
	soon(t, "the old front waits", func() bool { return log.has("another front has taken over") == 1 })
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := log.has("connections are cut"); n != 0 {
		t.Errorf("the log says it %d times", n)
	}
}
