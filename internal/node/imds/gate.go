// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxPerMachine is for a handful of programs that ask at once.
	maxPerMachine = 32
	// maxConnections bounds those of all machines together.
	maxConnections = 4096
)

// gate admits connections from known addresses only, a limited number for each machine, and sets the hop limit (IP TTL)
// of their answers. Other connections are reset, so that nothing is left of them.
type gate struct {
	net.Listener
	directory Directory
	log       *slog.Logger

	mutex sync.Mutex
	open  map[string]int // by machine
	all   int
	empty chan struct{} // closed when there is no connection any more; nil while nobody waits for that
}

func newGate(listener net.Listener, directory Directory, log *slog.Logger) *gate {
	return &gate{Listener: listener, directory: directory, log: log, open: map[string]int{}}
}

// Accept waits for a connection that is admitted.
func (g *gate) Accept() (net.Conn, error) {
	for {
		connection, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := g.admit(connection); admitted != nil {
			return admitted, nil
		}
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = connection.Close()
	}
}

// admit sets how far answers go before anything has been read: the kernel has sent no data yet. The handshake alone may
// go further, as with EC2, whose limit is one of answers too.
func (g *gate) admit(connection net.Conn) net.Conn {
	peer, err := netip.ParseAddrPort(connection.RemoteAddr().String())
	if err != nil {
		return nil
	}
	address := peer.Addr().Unmap()
	instance, err := g.directory.Lookup(address)
	if err != nil {
		if !errors.Is(err, ErrNotFound) {
			g.log.Error("cannot tell whose address that is", "address", address.String(), "error", err)
		}
		return nil
	}
	if address != instance.PrivateIP && instance.HopLimit < 2 { // a pod's own address is a hop further
		return nil
	}
	if err := limitHops(connection, max(instance.HopLimit, 1)); err != nil {
		g.log.Error("cannot limit how far answers go", "machine", instance.ID, "error", err)
		return nil
	}
	if !g.take(instance.ID) {
		g.log.Debug("too many connections", "machine", instance.ID)
		return nil
	}
	return &admitted{Conn: connection, release: sync.OnceFunc(func() { g.give(instance.ID) })}
}

func (g *gate) take(id string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.open[id] >= maxPerMachine || g.all >= maxConnections {
		return false
	}
	g.open[id]++
	g.all++
	return true
}

func (g *gate) give(id string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.all--
	if g.open[id]--; g.open[id] <= 0 {
		delete(g.open, id)
	}
	if g.all == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// wait waits until there is no connection any more, for a time at most. No connection is admitted meanwhile.
func (g *gate) wait(most time.Duration) {
	g.mutex.Lock()
	empty := make(chan struct{})
	if g.all == 0 {
		close(empty)
	} else {
		g.empty = empty
	}
	g.mutex.Unlock()
	select {
	case <-empty:
	case <-time.After(most):
	}
}

// admitted is a connection that counts until it is closed.
type admitted struct {
	net.Conn
	release func()
}

func (a *admitted) Close() error {
	defer a.release()
	return a.Conn.Close()
}

// limitHops sets the time to live of every packet of a connection (ip(7), IP_TTL).
func limitHops(connection net.Conn, hops int) error {
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return errors.New("not a TCP connection")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TTL, hops) })
	return errors.Join(err, failed)
}
