// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/socketdir"
)

// errHandedOver is of a socket that is to be opened after all were handed over.
var errHandedOver = errors.New("the next relay of this VPC has taken over")

// sockets are those that a relay listens on, by name. The next relay gets all of them, so that no client finds one
// closed.
type sockets struct {
	namespace *os.File

	mutex     sync.Mutex
	inherited map[string]*os.File // of the relay before, until each is opened or turns out not to be wanted
	open      map[string]any      // net.Listener or net.PacketConn
	over      bool                // they are the next relay's
}

func newSockets(namespace *os.File, inherited map[string]*os.File) *sockets {
	return &sockets{namespace: namespace, inherited: inherited, open: map[string]any{}}
}

// tcp listens in the VPC.
func (s *sockets) tcp(ctx context.Context, config net.ListenConfig, at netip.AddrPort) (net.Listener, error) {
	return s.listener("tcp "+at.String(), net.FileListener, func() (listener net.Listener, err error) {
		err = host.InNetwork(s.namespace, func() (err error) {
			listener, err = config.Listen(ctx, "tcp4", at.String())
			return err
		})
		return listener, err
	})
}

// udp receives packets in the VPC. Whoever does so closes the socket, after a handover, too.
func (s *sockets) udp(ctx context.Context, at netip.AddrPort) (net.PacketConn, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return obtain(s, "udp "+at.String(), net.FilePacketConn, func() (packets net.PacketConn, err error) {
		err = host.InNetwork(s.namespace, func() (err error) {
			packets, err = new(net.ListenConfig).ListenPacket(ctx, "udp4", at.String())
			return err
		})
		return packets, err
	})
}

// shown listens at a unix socket that others than this user may be shown.
func (s *sockets) shown(ctx context.Context, path string) (net.Listener, error) {
	inherit := func(file *os.File) (net.Listener, error) {
		inner, err := inheritUnix(file)
		if err != nil {
			return nil, err
		}
		return socketdir.Adopt(path, inner), nil
	}
	return s.listener("shown "+path, inherit, func() (net.Listener, error) { return socketdir.Listen(ctx, path) })
}

// private listens at a unix socket of this user's alone.
func (s *sockets) private(ctx context.Context, path string) (net.Listener, error) {
	inherit := func(file *os.File) (net.Listener, error) { return inheritUnix(file) }
	return s.listener("private "+path, inherit, func() (net.Listener, error) { return socketdir.ListenPrivate(ctx, path) })
}

// inheritUnix makes a listener whose socket goes with it, as one does that was opened.
func inheritUnix(file *os.File) (*net.UnixListener, error) {
	inner, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	listener, ok := inner.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(errors.New("the relay before handed no unix socket over"), inner.Close())
	}
	listener.SetUnlinkOnClose(true)
	return listener, nil
}

func (s *sockets) listener(name string, inherit func(*os.File) (net.Listener, error), open func() (net.Listener, error)) (net.Listener, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	inner, err := obtain(s, name, inherit, open)
	if err != nil {
		return nil, err
	}
	return &listed{Listener: inner, sockets: s, name: name}, nil
}

// obtain opens a socket, or takes the one of the relay before. The mutex is held.
func obtain[T any](s *sockets, name string, inherit func(*os.File) (T, error), open func() (T, error)) (opened T, err error) {
	if s.over {
		return opened, errHandedOver
	}
	if file := s.inherited[name]; file != nil {
		delete(s.inherited, name)
		defer func() { _ = file.Close() }() // the socket has a descriptor of its own by now
		opened, err = inherit(file)
	} else {
		opened, err = open()
	}
	if err == nil {
		s.open[name] = opened
	}
	return opened, err
}

// listed is a listener that leaves the list when it is closed.
type listed struct {
	net.Listener
	sockets *sockets
	name    string
	closed  bool
}

// Close closes the listener. A socket in the file system goes with it, unless it is the next relay's. Closed once more, by
// when another one may have the name, it is left alone.
func (l *listed) Close() error {
	l.sockets.mutex.Lock()
	defer l.sockets.mutex.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	delete(l.sockets.open, l.name)
	return l.Listener.Close()
}

// offer returns all sockets, and what makes them the next relay's: that fails if they are others by then.
func (s *sockets) offer() (all map[string]syscall.Conn, commit func() error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all = make(map[string]syscall.Conn, len(s.open))
	for name, open := range s.open {
		all[name] = open.(syscall.Conn) //nolint:forcetypeassert // every socket of net's is one
	}
	offered := maps.Clone(s.open)
	return all, func() error {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if !maps.Equal(offered, s.open) {
			return errors.New("this relay listens on other sockets by now")
		}
		s.over = true
		for _, open := range s.open {
			if named, ok := open.(interface{ SetUnlinkOnClose(unlink bool) }); ok {
				named.SetUnlinkOnClose(false)
			}
		}
		return nil
	}
}

// close closes the listeners that were given away. Sockets of packets are left to whoever still answers there.
func (s *sockets) close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, open := range s.open {
		if listener, ok := open.(net.Listener); ok {
			_ = listener.Close()
		}
	}
}

// drop closes what the relay before handed over and nobody wants.
func (s *sockets) drop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	handover.Close(s.inherited)
	clear(s.inherited)
}
