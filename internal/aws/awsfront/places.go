// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"muster.dev/muster/internal/platform/proxyheader"
)

// origin is where a connection comes from: an address of the host, or of a VPC. Two VPCs may have the same addresses.
type origin struct {
	vpc     string
	address netip.Addr
}

// places lets so many connections in at once, and so many from one address.
//
// A connection is at work from the moment at which its request's sender is proven until the answer is written; before
// and after that it costs its client nothing, and so it keeps nobody out. A client that comes when all places are taken
// gets that of the connection that has not been at work for the longest time: of all connections, or of those of its
// own address if that has its share.
type places struct {
	net.Listener
	most, perPeer int
	closed        chan struct{}
	close         sync.Once

	mu      sync.Mutex
	taken   int
	peers   map[origin]int
	resting list.List     // of *place, the one that has rested for the longest time first
	changed chan struct{} // has a value when a place may have become free
}

// place is one connection.
type place struct {
	net.Conn
	in   *places
	peer origin
	// resting is its element in the list, or nil while it is at work. Guarded by in.mu, as is gone.
	resting *list.Element
	gone    bool
}

func newPlaces(listener net.Listener, most, perPeer int) *places {
	return &places{
		Listener: listener, most: most, perPeer: perPeer, closed: make(chan struct{}), peers: map[origin]int{}, changed: make(chan struct{}, 1),
	}
}

// Accept lets the next connection in. If everybody is at work it waits for a place, unless these are all of that
// address: then the connection is closed.
func (p *places) Accept() (net.Conn, error) {
	for {
		connection, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		next := &place{Conn: connection, in: p, peer: originOf(connection)}
		for {
			entered, out, refuse := p.enter(next)
			if out != nil {
				_ = out.Conn.Close()
			}
			if entered {
				return next, nil
			}
			if refuse {
				_ = connection.Close()
				break
			}
			select {
			case <-p.changed:
			case <-p.closed:
				_ = connection.Close()
				return nil, net.ErrClosed
			}
		}
	}
}

// enter gives a connection a place, and returns the one that had it, or says that its address has its share.
func (p *places) enter(next *place) (entered bool, out *place, refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	share := p.peers[next.peer] >= p.perPeer
	if share || p.taken >= p.most {
		for e := p.resting.Front(); e != nil && out == nil; e = e.Next() {
			if other := e.Value.(*place); !share || other.peer == next.peer {
				out = other
			}
		}
		if out == nil {
			return false, nil, share
		}
		p.leave(out)
	}
	p.taken++
	p.peers[next.peer]++
	next.resting = p.resting.PushBack(next)
	return true, out, false
}

// leave takes a connection out, once.
func (p *places) leave(c *place) {
	if c.gone {
		return
	}
	c.gone = true
	if c.resting != nil {
		p.resting.Remove(c.resting)
		c.resting = nil
	}
	p.taken--
	if p.peers[c.peer]--; p.peers[c.peer] <= 0 {
		delete(p.peers, c.peer)
	}
	p.tell()
}

func (p *places) tell() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Close lets nobody in any more.
func (p *places) Close() error {
	p.close.Do(func() { close(p.closed) })
	return p.Listener.Close()
}

// work keeps the connection its place until it rests.
func (c *place) work() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.resting != nil {
		c.in.resting.Remove(c.resting)
		c.resting = nil
	}
}

// rest says that a request was answered. A connection that proved nothing has not been at work, and stays where it was
// in the list.
func (c *place) rest() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.resting == nil && !c.gone {
		c.resting = c.in.resting.PushBack(c)
		c.in.tell()
	}
}

// Close gives the place free.
func (c *place) Close() error {
	c.in.mu.Lock()
	c.in.leave(c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// originOf is where a connection comes from.
func originOf(c net.Conn) origin {
	var o origin
	if relayed, ok := c.(*proxyheader.Conn); ok {
		o.vpc = relayed.Header.VPC
	}
	if address, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		o.address = address.Addr().Unmap()
	}
	return o
}
