// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// flowIdle is how long a client's packets go to one target after the last of them, as with AWS's network load
	// balancers.
	flowIdle = 120 * time.Second
	// maxFlows is how many clients of one place have a target at a time.
	maxFlows = 2048
	// maxPacket is more than a packet can have.
	maxPacket = 65536
)

// flows are those of the clients of one place. A flow is a socket of the VPC, so that the answers to one client are
// told from another's.
type flows struct {
	port   *port
	socket *net.UDPConn

	mutex  sync.Mutex
	byPeer map[netip.AddrPort]*flow
	// each is how many of them an address has.
	each   map[netip.Addr]int
	closed bool
}

// flow is one client's.
type flow struct {
	target   netip.AddrPort
	upstream *net.UDPConn
	used     atomic.Int64 // Unix time in nanoseconds
}

// listenUDP opens a place for packets.
func (p *port) listenUDP(l *listening, where netip.AddrPort, namespace namespace) {
	var socket *net.UDPConn
	l.err = within(namespace, func() (err error) {
		socket, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(where))
		return err
	})
	if l.err != nil {
		return
	}
	l.socket, l.flows = socket, &flows{port: p, socket: socket, byPeer: map[netip.AddrPort]*flow{}, each: map[netip.Addr]int{}}
	p.front.running.Go(func() {
		defer close(l.ended)
		defer func() { _ = socket.Close() }()
		defer l.flows.close()
		if err := l.flows.serve(); err != nil && p.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
			p.front.server.config.Log.Error("a socket has ended", "address", where.String(), "error", err)
		}
	})
}

// serve passes packets to targets until the socket ends.
func (f *flows) serve() error {
	packet := make([]byte, maxPacket)
	for {
		n, peer, err := f.socket.ReadFromUDPAddrPort(packet)
		if err != nil {
			return err
		}
		peer = netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port())
		if !f.port.front.settings.Load().Allows(peer.Addr()) {
			f.port.front.count().refused.WithLabelValues(f.port.front.labels(refusedSource)...).Inc()
			continue
		}
		f.forward(peer, packet[:n])
	}
}

// forward passes one packet on. A flow whose target says that nobody listens there is replaced, once for each target.
func (f *flows) forward(peer netip.AddrPort, packet []byte) {
	for range 3 {
		one := f.of(peer)
		if one == nil {
			return
		}
		one.used.Store(time.Now().UnixNano())
		_, err := one.upstream.Write(packet)
		if err == nil {
			return
		}
		f.port.targets.refused(one.target, reasonOf(err))
		f.remove(peer, one)
	}
}

// of is the flow of a client, which is made if there is none; nil if none can be made.
func (f *flows) of(peer netip.AddrPort) *flow {
	f.mutex.Lock()
	one, full := f.byPeer[peer], f.each[peer.Addr()] >= maxFlows-len(f.byPeer) // as many as are left, as of all places
	f.mutex.Unlock()
	if one != nil {
		return one
	}
	p := f.port
	if full {
		p.front.count().refused.WithLabelValues(p.front.labels(refusedLimit)...).Inc()
		return nil
	}
	for _, target := range p.targets.choose(peer.Addr()) {
		upstream, err := p.front.server.dialer.DialUDP(p.front.owner.cluster, p.address, target)
		if err != nil {
			p.front.count().failures.WithLabelValues(p.front.labels()...).Inc()
			p.targets.refused(target, reasonOf(err))
			continue
		}
		p.targets.took(peer.Addr(), target)
		return f.begin(peer, &flow{target: target, upstream: upstream})
	}
	p.front.count().refused.WithLabelValues(p.front.labels(refusedNoTarget)...).Inc()
	return nil
}

func (f *flows) begin(peer netip.AddrPort, one *flow) *flow {
	one.used.Store(time.Now().UnixNano())
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.closed {
		_ = one.upstream.Close()
		return nil
	}
	if !f.port.front.take(peer.Addr()) {
		_ = one.upstream.Close()
		f.port.front.count().refused.WithLabelValues(f.port.front.labels(refusedLimit)...).Inc()
		return nil
	}
	f.byPeer[peer] = one
	f.each[peer.Addr()]++
	f.port.front.count().connections.WithLabelValues(f.port.front.labels()...).Inc()
	f.port.front.running.Go(func() {
		defer f.port.front.give(peer.Addr())
		defer f.remove(peer, one)
		f.answer(peer, one)
	})
	return one
}

// answer passes a target's packets back until the flow ends or rests for too long.
func (f *flows) answer(peer netip.AddrPort, one *flow) {
	open := f.port.front.count().open.WithLabelValues(f.port.front.labels()...)
	open.Inc()
	defer open.Dec()
	raw, err := one.upstream.SyscallConn()
	if err != nil {
		return
	}
	for {
		_ = one.upstream.SetReadDeadline(time.Unix(0, one.used.Load()).Add(flowIdle))
		err := readPacket(raw, func(packet []byte) error {
			one.used.Store(time.Now().UnixNano())
			_, err := f.socket.WriteToUDPAddrPort(packet, peer)
			return err
		})
		var late net.Error
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil, errors.Is(err, errUnanswered):
		case errors.As(err, &late) && late.Timeout() && time.Since(time.Unix(0, one.used.Load())) < flowIdle:
		default: // nobody listens there, or it is closed
			return
		}
	}
}

// buffers are for packets that are there. A flow that rests, as most do, has none.
var buffers = sync.Pool{New: func() any { return new([maxPacket]byte) }}

// errUnanswered means that a packet could not be passed back.
var errUnanswered = errors.New("the client cannot be reached")

// readPacket waits for a packet and passes it on.
func readPacket(raw syscall.RawConn, pass func([]byte) error) error {
	var failed error
	err := raw.Read(func(fd uintptr) bool {
		buffer, _ := buffers.Get().(*[maxPacket]byte)
		defer buffers.Put(buffer)
		n, err := unix.Read(int(fd), buffer[:])
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			return errors.Is(err, unix.EINTR)
		case err != nil:
			failed = err
		default:
			if err := pass(buffer[:n]); errors.Is(err, net.ErrClosed) {
				failed = err
			} else if err != nil {
				failed = errUnanswered
			}
		}
		return true
	})
	return errors.Join(err, failed)
}

// remove ends a flow, so that the client's next packet chooses a target.
func (f *flows) remove(peer netip.AddrPort, one *flow) {
	_ = one.upstream.Close()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.byPeer[peer] == one {
		f.forget(peer)
	}
}

// forget takes a flow from the list. The mutex is held.
func (f *flows) forget(peer netip.AddrPort) {
	delete(f.byPeer, peer)
	if f.each[peer.Addr()]--; f.each[peer.Addr()] <= 0 {
		delete(f.each, peer.Addr())
	}
}

// drop ends the flows to some targets.
func (f *flows) drop(match func(netip.AddrPort) bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for peer, one := range f.byPeer {
		if match(one.target) {
			_ = one.upstream.Close()
			f.forget(peer)
		}
	}
}

func (f *flows) close() {
	f.mutex.Lock()
	f.closed = true
	f.mutex.Unlock()
	f.drop(func(netip.AddrPort) bool { return true })
}
