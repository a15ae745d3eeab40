// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"net"
	"net/netip"
	"sync"
)

const (
	// maxPerAddress is for the programs of one pod that ask at once.
	maxPerAddress = 64
	// maxConnections bounds those of all pods together: the agent of a machine has other things to open files for.
	maxConnections = 4096
	// fraction of what is left that one address may have: of N that take all they get, each has
	// maxConnections/(N+fraction), and one more gets as much.
	fraction = 8
)

// connections counts those that are open.
type connections struct {
	mu   sync.Mutex
	open map[netip.Addr]int
	all  int
}

func (c *connections) take(address netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := maxConnections - c.all; left <= 0 || c.open[address] >= min(maxPerAddress, max(1, left/fraction)) {
		return false
	}
	c.open[address]++
	c.all++
	return true
}

func (c *connections) give(address netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.open[address]--; c.open[address] <= 0 {
		delete(c.open, address)
	}
}

// gate admits a limited number of connections of each address. Further connections are reset, so that nothing is left
// of them.
type gate struct {
	net.Listener
	connections *connections
}

// Accept waits for a connection that is admitted.
func (g gate) Accept() (net.Conn, error) {
	for {
		connection, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, err := netip.ParseAddrPort(connection.RemoteAddr().String())
		if address := from.Addr().Unmap(); err == nil && g.connections.take(address) {
			return &admitted{Conn: connection, release: sync.OnceFunc(func() { g.connections.give(address) })}, nil
		}
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = connection.Close()
	}
}

// admitted is a connection that counts until it is closed.
type admitted struct {
	net.Conn
	release func()
}

// Close gives the place back.
func (a *admitted) Close() error {
	defer a.release()
	return a.Conn.Close()
}
