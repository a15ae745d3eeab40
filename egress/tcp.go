// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// dialTimeout is how long a connection may take to come about. A machine's kernel asks again meanwhile, and is not
	// heard.
	dialTimeout = 30 * time.Second
	// A machine that is gone says no goodbye: its side of a connection is asked whether it is there.
	keepAliveIdle, keepAliveInterval, keepAliveCount = 60 * time.Second, 15 * time.Second, 4
	// unacknowledged is how long a machine may leave what was sent to it unacknowledged.
	unacknowledged = 2 * time.Minute
	// Above manyConnections of one machine a connection has a fixed room, and above mostConnections an eighth of it.
	manyConnections, mostConnections = 32, 256
)

// connect serves a request for a connection. It accepts the machine's connection only after the outside connection is
// open, and resets it if the outside one is refused. After a timeout it does not answer, as the outside host did not.
func (e *egress) connect(request *tcp.ForwarderRequest) {
	between := endsOf(request.ID())
	dialling, cancel := context.WithTimeout(e.ctx, dialTimeout)
	defer cancel()
	own := &flow{machine: e.machine(between.source.Addr()), destination: between.destination.Addr(), end: cancel}
	if !e.halfOpen.take(own, between.source.Addr()) {
		e.over(between, own.machine, "tcp")
		request.Complete(true)
		return
	}
	defer e.halfOpen.give(own)
	outside, err := e.dialTCP(dialling, between)
	if err != nil {
		// Nobody answered: neither is the machine. Everything else it is told at once.
		request.Complete(!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, unix.ETIMEDOUT))
		return
	}
	established := &flow{machine: own.machine, destination: own.destination, end: func() { abort(outside) }}
	if !e.connections.take(established, between.source.Addr()) {
		e.over(between, own.machine, "tcp")
		abort(outside)
		request.Complete(true)
		return
	}
	// A change of the settings in this moment ended neither the dialling, which was over, nor the connection, which was
	// not listed yet.
	if refusal := e.gate.refuse(own.destination); refusal != "" {
		e.refused(between, refusal)
		e.connections.give(established)
		abort(outside)
		request.Complete(true)
		return
	}
	var queue waiter.Queue
	endpoint, failed := request.CreateEndpoint(&queue)
	request.Complete(false)
	if failed != nil {
		e.connections.give(established)
		abort(outside)
		return
	}
	keepAlive(endpoint)
	room := roomOf(established.nth)
	room.limit(endpoint)
	e.counted.connections.Inc()
	e.running.Go(func() {
		defer e.connections.give(established)
		e.join(endpointOf{endpoint, &queue}, outside, room.buffers)
	})
}

// dialTCP connects to a destination, if that is allowed.
func (e *egress) dialTCP(ctx context.Context, between ends) (*net.TCPConn, error) {
	connection, err := e.dial(ctx, "tcp4", between)
	if err != nil {
		return nil, err
	}
	outside, ok := connection.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(net.UnknownNetworkError("tcp4"), connection.Close())
	}
	return outside, nil
}

// dial makes a socket of the host's to a destination. It is asked about when the socket connects, so nothing comes
// between.
func (e *egress) dial(ctx context.Context, network string, between ends) (net.Conn, error) {
	dialer := net.Dialer{FallbackDelay: -1, Control: func(_, address string, _ syscall.RawConn) error {
		dialled, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if refusal := e.gate.refuse(dialled.Addr()); refusal != "" {
			e.refused(between, refusal)
			return unix.EPERM
		}
		return nil
	}}
	return dialer.DialContext(ctx, network, between.destination.String())
}

// keepAlive finds machines that are gone.
func keepAlive(endpoint tcpip.Endpoint) {
	idle, interval, timeout := tcpip.KeepaliveIdleOption(keepAliveIdle), tcpip.KeepaliveIntervalOption(keepAliveInterval), tcpip.TCPUserTimeoutOption(unacknowledged)
	_ = endpoint.SetSockOpt(&idle) // these options never fail
	_ = endpoint.SetSockOpt(&interval)
	_ = endpoint.SetSockOpt(&timeout)
	_ = endpoint.SetSockOptInt(tcpip.KeepaliveCountOption, keepAliveCount)
	endpoint.SocketOptions().SetKeepAlive(true)
}

// join carries bytes both ways until both have ended, or one has failed: then the other is reset, too.
func (e *egress) join(endpoint endpointOf, outside *net.TCPConn, from *buffers) {
	inside := gonet.NewTCPConn(endpoint.queue, endpoint.Endpoint)
	stop := context.AfterFunc(e.ctx, func() { abort(outside) })
	defer stop()
	var both sync.WaitGroup
	fail := func(err error) {
		if err != nil {
			abort(outside)
			endpoint.Abort()
		}
	}
	both.Go(func() {
		err := lazyRead(outside, true, from, func(read []byte) error {
			e.counted.in.Add(float64(len(read)))
			_, err := inside.Write(read)
			return err
		})
		if errors.Is(err, io.EOF) {
			err = inside.CloseWrite()
		}
		fail(err)
	})
	both.Go(func() {
		err := lazyReadInside(e.ctx, endpoint, from, func(read []byte) error {
			e.counted.out.Add(float64(len(read)))
			_, err := outside.Write(read)
			return err
		})
		if errors.Is(err, io.EOF) {
			err = outside.CloseWrite()
		}
		fail(err)
	})
	both.Wait()
	_ = outside.Close()
	_ = inside.Close()
}

// room is what a connection keeps of bytes that its other side does not take: in the stack in each direction, and in a
// buffer.
type room struct {
	stack   int64 // 0 for what the stack gives by itself
	buffers *buffers
}

func (r room) limit(endpoint tcpip.Endpoint) {
	if r.stack != 0 {
		endpoint.SocketOptions().SetReceiveBufferSize(r.stack, true)
		endpoint.SocketOptions().SetSendBufferSize(r.stack, true)
	}
}

// roomOf is the buffer space of the nth connection of a machine. The first connections have as much as they can use;
// later ones have less, so that thousands of connections that nobody reads do not take gigabytes.
func roomOf(nth int) room {
	switch {
	case nth <= manyConnections:
		return room{0, chunks}
	case nth <= mostConnections:
		return room{buffered, chunks}
	}
	return room{buffered / 8, fewChunks}
}

// abort closes a connection with a reset, so that the other side does not take its end for a good one.
func abort(connection *net.TCPConn) {
	_ = connection.SetLinger(0)
	_ = connection.Close()
}
