// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/proxyheader"
)

const (
	// dialTimeout is how long one target may take to answer. Every packet stays on this host.
	dialTimeout = 2 * time.Second
	// patience is how long a client waits until some target has taken its connection.
	patience = 10 * time.Second
	// acceptPause is the time until another try when the process has no file descriptors left.
	acceptPause = 50 * time.Millisecond
)

// listenTCP opens a place for connections.
func (p *port) listenTCP(l *listening, where netip.AddrPort, namespace namespace) {
	var listener net.Listener
	l.err = within(namespace, func() (err error) {
		listener, err = (&net.ListenConfig{KeepAlive: -1}).Listen(p.ctx, "tcp4", where.String())
		return err
	})
	if l.err != nil {
		return
	}
	l.socket = listener
	p.front.running.Go(func() {
		defer close(l.ended)
		defer func() { _ = listener.Close() }()
		if err := p.accept(listener); p.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
			p.front.server.config.Log.Error("a listener has ended", "address", where.String(), "error", err)
		}
	})
}

// within makes a socket in a namespace, or on the host if that is nil.
func within(namespace namespace, fn func() error) error {
	if namespace == nil {
		return fn()
	}
	return host.InNetwork(namespace, fn)
}

// accept serves connections until the listener ends, and returns why it has.
func (p *port) accept(listener net.Listener) error {
	for {
		accepted, err := listener.Accept()
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ECONNABORTED) {
			p.front.server.config.Log.Warn("cannot accept a connection", "error", err)
			time.Sleep(acceptPause)
			continue
		}
		if err != nil {
			return err
		}
		client, ok := accepted.(*net.TCPConn)
		if !ok {
			_ = accepted.Close()
			continue
		}
		from := addressOf(client.RemoteAddr()).Addr()
		if !p.front.settings.Load().Allows(from) {
			p.refuse(client, refusedSource)
			continue
		}
		if !p.front.take(from) {
			p.refuse(client, refusedLimit)
			continue
		}
		p.front.running.Go(func() {
			defer p.front.give(from)
			p.serve(client)
		})
	}
}

// refuse resets a connection.
func (p *port) refuse(client *net.TCPConn, reason string) {
	p.front.count().refused.WithLabelValues(p.front.labels(reason)...).Inc()
	_ = client.SetLinger(0)
	_ = client.Close()
}

// serve passes one connection to a target.
func (p *port) serve(client *net.TCPConn) {
	source := addressOf(client.RemoteAddr())
	backend := p.connect(source.Addr())
	if backend == nil {
		p.refuse(client, refusedNoTarget)
		return
	}
	settings := p.front.settings.Load()
	if settings.ProxyProtocol {
		if err := proxyheader.WriteAddresses(backend, source, addressOf(client.LocalAddr())); err != nil {
			_ = backend.Close()
			p.refuse(client, refusedNoTarget)
			return
		}
	}
	open := p.front.count().open.WithLabelValues(p.front.labels()...)
	open.Inc()
	defer open.Dec()
	p.front.count().connections.WithLabelValues(p.front.labels()...).Inc()
	pass(p.ctx, client, backend, time.Duration(settings.IdleSeconds)*time.Second)
}

// connect tries targets until one takes the connection; nil if none does. Nothing of the client's has been read yet, so
// any of them will do.
func (p *port) connect(client netip.Addr) net.Conn {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for _, target := range p.targets.choose(client) {
		if ctx.Err() != nil {
			return nil
		}
		dialing, done := context.WithTimeout(ctx, dialTimeout)
		backend, err := p.front.server.dialer.Dial(dialing, p.front.owner.cluster, p.address, target)
		done()
		if err == nil {
			p.targets.took(client, target)
			return backend
		}
		p.front.count().failures.WithLabelValues(p.front.labels()...).Inc()
		p.targets.refused(target, reasonOf(err))
	}
	return nil
}

// addressOf reads an address of a socket.
func addressOf(address net.Addr) netip.AddrPort {
	var found netip.AddrPort
	switch a := address.(type) {
	case *net.TCPAddr:
		found = a.AddrPort()
	case *net.UDPAddr:
		found = a.AddrPort()
	}
	return netip.AddrPortFrom(found.Addr().Unmap(), found.Port())
}

// halfCloser is a connection of which one direction can end before the other.
type halfCloser interface{ CloseWrite() error }

// pass passes bytes between two connections until both directions have ended, or nothing has been sent for too long,
// and closes them. The end of one direction is passed on as such.
func pass(ctx context.Context, client, backend net.Conn, idle time.Duration) {
	closeBoth := func() { _, _ = client.Close(), backend.Close() }
	defer closeBoth()
	defer context.AfterFunc(ctx, closeBoth)()
	limitSilence(client)
	limitSilence(backend)
	defer watchIdle(idle, closeBoth, client, backend)()
	done := make(chan struct{})
	go func() {
		defer close(done)
		oneWay(backend, client)
	}()
	oneWay(client, backend)
	<-done
}

// oneWay passes the bytes of one direction. A broken one breaks the other, too, with a reset: an end would look like a
// whole answer.
func oneWay(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if end, ok := to.(halfCloser); ok && err == nil && end.CloseWrite() == nil {
		return
	}
	for _, c := range []net.Conn{to, from} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}
