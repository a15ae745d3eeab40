// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dialTimeout is how long a server may take to accept. Everything is on this host.
	dialTimeout = time.Second
	// patience is how long a connection waits for a server that is ready before it is offered to all, retryEvery how often
	// servers are tried that do not accept, and hold how long a connection waits in all. It is less than a client of
	// upstream's gives a TLS handshake (10 s), and more than a kube-apiserver takes to start again: the watches of all
	// clients go on by their next connection, where one that is reset lists everything anew.
	patience   = 2 * time.Second
	retryEvery = 50 * time.Millisecond
	hold       = 8 * time.Second
	// acceptPause is the time until another try when the kernel lets no connection be accepted, as while all file
	// descriptors are taken.
	acceptPause = 50 * time.Millisecond
	// maxServers is how many servers a connection is passed to one after the other while each goes without a word.
	maxServers = 4
)

// accept passes connections on until the listener is closed, which is not an error.
func (f *Front) accept(ctx context.Context, listener net.Listener) error {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBADF) { // nothing listens any more
			return fmt.Errorf("accepting connections: %w", err)
		}
		if err != nil { // of one connection, or the kernel has no room for any now
			f.noAccept.Do(func() { f.config.Log.Warn("cannot accept connections", "error", err) })
			pause(ctx, acceptPause)
			continue
		}
		select {
		case f.slots <- struct{}{}:
		default:
			f.metrics.refused.WithLabelValues(refusedLimit).Inc()
			f.noPlace.Do(func() { f.config.Log.Warn("connections are refused: all places are taken", "places", cap(f.slots)) })
			reset(client)
			continue
		}
		f.open.Go(func() {
			defer func() { <-f.slots }()
			f.serve(ctx, client)
		})
	}
}

// serve passes one connection to a server.
func (f *Front) serve(ctx context.Context, accepted net.Conn) {
	client := accepted.(*net.TCPConn) //nolint:forcetypeassert // of a TCP listener
	_ = client.SetKeepAlive(false)    // which net turns on for a listener that was passed
	left := hold
	connect := func(silent netip.AddrPort) (*net.TCPConn, netip.AddrPort) {
		began := time.Now()
		defer func() { left -= time.Since(began) }()
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		return f.connect(ctx, silent)
	}
	server, address := connect(netip.AddrPort{})
	if server == nil {
		f.metrics.refused.WithLabelValues(refusedNoServer).Inc()
		reset(client)
		return
	}
	done := f.pool.took(address)
	defer func() { done() }()
	f.metrics.connections.Inc()
	tried := 1
	join(ctx, client, server, func() *net.TCPConn {
		f.lookNow()
		if tried == maxServers {
			return nil
		}
		tried++
		next, other := connect(address)
		if next != nil {
			f.metrics.repeated.Inc()
			done()
			address, done = other, f.pool.took(other)
		}
		return next
	}, f.lookNow)
}

// connect offers a connection to servers until one accepts; nil if none does before the context ends. No server has
// answered the client yet, so every server will do; the silent one is offered it if there is no other.
func (f *Front) connect(ctx context.Context, silent netip.AddrPort) (*net.TCPConn, netip.AddrPort) {
	late, toAll := time.After(patience), false
	for {
		order, ready, changed := f.pool.choose()
		if i := slices.Index(order, silent); i >= 0 {
			order = append(slices.Delete(order, i, i+1), silent)
			if len(order) == 1 {
				pause(ctx, retryEvery)
			}
		}
		var again <-chan time.Time
		if ready || toAll {
			for _, address := range order {
				server, err := dial(ctx, address)
				if err == nil {
					return server, address
				}
				if errors.Is(err, unix.ECONNREFUSED) && f.pool.refused(address, time.Now()) {
					f.tellServer(address, refuses)
				}
			}
			again = time.After(retryEvery)
		}
		select {
		case <-ctx.Done():
			return nil, netip.AddrPort{}
		case <-late:
			toAll = true
		case <-changed:
		case <-again:
		}
	}
}

func dial(ctx context.Context, address netip.AddrPort) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	return dialer.DialTCP(ctx, "tcp", netip.AddrPort{}, address)
}

// reset ends a connection in a way that no client takes for an answer.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}
