// SPDX-License-Identifier: Apache-2.0

package proxyheader

import (
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// patience is how long a relay may take to send the header, which it does at once.
	patience = 2 * time.Second
	// maxWaiting is how many connections may have sent no header yet, or wait to be accepted. One more closes the
	// oldest of those that have sent no header for a moment.
	maxWaiting = 256
	moment     = 250 * time.Millisecond
)

// Conn is a connection that a relay passes on.
type Conn struct {
	net.Conn
	Header Header
}

// RemoteAddr returns the address of the client behind the relay.
func (c *Conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.Header.Source) }

// Listener accepts the connections of relays. Each is a *Conn, whose header was read and is not in its data any more.
//
// Headers are read beside each other: a connection that sends none delays no other one. It is closed after two seconds,
// or as the oldest of too many.
type Listener struct {
	inner net.Listener
	log   *slog.Logger

	begin, end sync.Once
	accepted   chan accepted
	slots      chan struct{} // a value for each connection that Accept has not returned yet
	ended      chan struct{}

	mu      sync.Mutex
	unnamed []unnamed // the oldest first
}

// unnamed is a connection that has sent no header.
type unnamed struct {
	connection net.Conn
	since      time.Time
}

type accepted struct {
	connection *Conn
	err        error
}

// NewListener makes a Listener of one that nobody but relays can connect to.
func NewListener(inner net.Listener, log *slog.Logger) *Listener {
	return &Listener{
		inner: inner, log: log, accepted: make(chan accepted), slots: make(chan struct{}, maxWaiting), ended: make(chan struct{}),
	}
}

// Accept returns the next connection whose header is there.
func (l *Listener) Accept() (net.Conn, error) {
	l.begin.Do(func() { go l.acceptAll() })
	select {
	case next := <-l.accepted:
		if next.err != nil {
			return nil, next.err
		}
		return next.connection, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close closes the listener. Each connection that Accept has not returned is closed when its header is there or should
// have been.
func (l *Listener) Close() error {
	l.end.Do(func() { close(l.ended) })
	return l.inner.Close()
}

// Addr returns the address at which relays connect.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// acceptAll takes connections until the listener is closed. An error waits for whoever calls Accept, who may go on.
func (l *Listener) acceptAll() {
	for {
		connection, err := l.inner.Accept()
		if err != nil {
			select {
			case l.accepted <- accepted{err: err}:
				continue
			case <-l.ended:
				return
			}
		}
		if !l.reserve() {
			_ = connection.Close()
			return
		}
		l.remember(connection)
		go l.read(connection)
	}
}

// reserve waits until there is room for one more connection, and reports whether there is: no, when the listener is
// closed.
func (l *Listener) reserve() bool {
	for {
		select {
		case l.slots <- struct{}{}:
			return true
		default:
		}
		timer := time.NewTimer(l.makeRoom())
		select {
		case l.slots <- struct{}{}:
			timer.Stop()
			return true
		case <-timer.C:
		case <-l.ended:
			timer.Stop()
			return false
		}
	}
}

// makeRoom closes the oldest connection without a header if it has had its moment, and returns when to look again.
func (l *Listener) makeRoom() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unnamed) == 0 {
		return moment
	}
	if left := moment - time.Since(l.unnamed[0].since); left > 0 {
		return left
	}
	_ = l.unnamed[0].connection.Close()
	l.unnamed = l.unnamed[1:]
	return moment
}

// read reads the header of a connection and has Accept return it.
func (l *Listener) read(connection net.Conn) {
	defer func() { <-l.slots }()
	named, err := readHeader(connection)
	if !l.forget(connection) { // it was closed to make room
		err = net.ErrClosed
	}
	if err != nil {
		_ = connection.Close()
		l.log.Warn("a connection of a VPC's relay is refused", "error", err)
		return
	}
	select {
	case l.accepted <- accepted{connection: named}:
	case <-l.ended:
		_ = connection.Close()
	}
}

// remember puts a connection last of those that have sent no header.
func (l *Listener) remember(connection net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unnamed = append(l.unnamed, unnamed{connection, time.Now()})
}

// forget takes a connection out of these, and reports whether it was there.
func (l *Listener) forget(connection net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.unnamed, func(u unnamed) bool { return u.connection == connection })
	if i >= 0 {
		l.unnamed = slices.Delete(l.unnamed, i, i+1)
	}
	return i >= 0
}

func readHeader(connection net.Conn) (*Conn, error) {
	if err := connection.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	header, err := Read(connection)
	if err != nil {
		return nil, err
	}
	return &Conn{connection, header}, connection.SetReadDeadline(time.Time{})
}
