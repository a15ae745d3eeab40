// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
)

// door is a listener at which connections come as a test says.
type door struct {
	net.Listener
	come chan net.Conn
}

func (d door) Accept() (net.Conn, error) {
	c, ok := <-d.come
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (d door) Close() error { return nil }

// visitor is one connection.
type visitor struct {
	net.Conn
	from   string
	closed bool
}

func (v *visitor) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(v.from), 1))
}

func (v *visitor) Close() error { v.closed = true; return nil }

// guests is a hall with places, and the guests that come in.
type guests struct {
	t *testing.T
	*places
	come chan net.Conn
}

func newGuests(t *testing.T, most, perPeer int) guests {
	t.Helper()
	come := make(chan net.Conn, 16)
	return guests{t, newPlaces(door{come: come}, most, perPeer), come}
}

func (g guests) in(from string) (*visitor, *place) {
	g.t.Helper()
	v := &visitor{from: from}
	g.come <- v
	c, err := g.Accept()
	if err != nil {
		g.t.Fatal(err)
	}
	return v, c.(*place)
}

func TestThePlaceOfWhoRestsForTheLongest(t *testing.T) {
	g := newGuests(t, 3, 3)
	first, at := g.in("10.0.0.1")
	second, atSecond := g.in("10.0.0.1")
	third, _ := g.in("10.0.0.2")
	at.work()
	g.in("10.0.0.3")
	if first.closed || !second.closed || third.closed {
		t.Errorf("first %v, second %v, third %v: the second has rested for the longest", first.closed, second.closed, third.closed)
	}
	_ = atSecond.Close() // as net/http does once it reads from it: its place is free once only
	atSecond.rest()
	at.rest()
	g.in("10.0.0.3")
	if first.closed || !third.closed {
		t.Errorf("first %v, third %v: the first has just been at work", first.closed, third.closed)
	}
	if g.taken != 3 || g.resting.Len() != 3 {
		t.Errorf("%d taken, %d rest", g.taken, g.resting.Len())
	}
	for e := g.resting.Front(); e != nil; e = g.resting.Front() {
		_ = e.Value.(*place).Close()
	}
	if g.taken != 0 || len(g.peers) != 0 {
		t.Errorf("%d taken, by %v", g.taken, g.peers)
	}
}

func TestAnAddressHasItsShare(t *testing.T) {
	g := newGuests(t, 8, 2)
	other, _ := g.in("10.0.0.2")
	first, at := g.in("10.0.0.1")
	second, atSecond := g.in("10.0.0.1")
	g.in("10.0.0.1")
	if other.closed || !first.closed || second.closed {
		t.Errorf("other %v, first %v, second %v", other.closed, first.closed, second.closed)
	}
	_ = at
	atSecond.work()
	for e := g.resting.Front(); e != nil; e = e.Next() {
		if p := e.Value.(*place); p.peer.address == netip.MustParseAddr("10.0.0.1") {
			p.work()
			break
		}
	}
	refused := &visitor{from: "10.0.0.1"}
	g.come <- refused
	if next, _ := g.in("10.0.0.3"); !refused.closed || next.closed || second.closed {
		t.Errorf("all of an address are at work: refused %v, the next one of another closed %v", refused.closed, next.closed)
	}
}

func TestAllAreAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuests(t, 1, 1)
		_, at := g.in("10.0.0.1")
		at.work()
		waits := &visitor{from: "10.0.0.2"}
		g.come <- waits
		entered := make(chan error, 2)
		accept := func() { _, err := g.Accept(); entered <- err }
		go accept()
		synctest.Wait()
		if len(entered) != 0 || waits.closed {
			t.Fatal("there was a place although everybody is at work")
		}
		_ = at.Close()
		if err := <-entered; err != nil || waits.closed {
			t.Fatal("a free place was not taken", err)
		}
		g.resting.Front().Value.(*place).work()
		last := &visitor{from: "10.0.0.3"}
		g.come <- last
		go accept()
		synctest.Wait()
		_ = g.Close()
		if err := <-entered; err == nil || !last.closed {
			t.Fatal("somebody waits for ever", err)
		}
	})
}
