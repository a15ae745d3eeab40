// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"muster.dev/muster/internal/iam/caller"
)

// places bounds connections: how many there are, and how many of them are one caller's, so that no cluster takes those
// of the others.
type places struct {
	net.Listener
	logger *slog.Logger
	free   chan struct{}

	mu    sync.Mutex
	taken map[caller.Caller]int
}

func newPlaces(listener net.Listener, logger *slog.Logger) *places {
	return &places{Listener: listener, logger: logger, free: make(chan struct{}, maxConnections), taken: map[caller.Caller]int{}}
}

// Accept gives the next connection for which there is a place.
func (p *places) Accept() (net.Conn, error) {
	for {
		connection, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case p.free <- struct{}{}:
			return &placed{Conn: connection, places: p}, nil
		default:
			p.logger.Warn("refused a connection: there are too many", "connections", maxConnections)
			_ = connection.Close()
		}
	}
}

// secured has each connection count as its caller's once that is verified.
func (p *places) secured(config *tls.Config) *tls.Config {
	outer := config.Clone()
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		connection, ok := hello.Conn.(*placed)
		if !ok {
			return nil, errors.New("the connection has no place")
		}
		inner := config.Clone()
		inner.VerifyConnection = func(state tls.ConnectionState) error {
			who, _, err := callerOf(&state)
			if err == nil {
				err = p.claim(connection, who)
			}
			if err != nil {
				p.logger.Warn("refused a connection", "error", err)
			}
			return err
		}
		return inner, nil
	}
	return outer
}

// claim counts a connection as a caller's.
func (p *places) claim(connection *placed, who caller.Caller) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case connection.closed:
		return net.ErrClosed
	case p.taken[who] >= maxOfOne:
		return fmt.Errorf("%s has %d connections already", who, maxOfOne)
	}
	connection.who, connection.claimed = who, true
	p.taken[who]++
	return nil
}

// placed is a connection that has a place.
type placed struct {
	net.Conn
	places *places

	// under the lock of places
	who             caller.Caller
	claimed, closed bool
}

// Close gives the place free.
func (c *placed) Close() error {
	c.places.leave(c)
	return c.Conn.Close()
}

func (p *places) leave(c *placed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	<-p.free
	if !c.claimed {
		return
	}
	if p.taken[c.who]--; p.taken[c.who] == 0 {
		delete(p.taken, c.who)
	}
}
