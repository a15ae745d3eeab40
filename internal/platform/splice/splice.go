// SPDX-License-Identifier: Apache-2.0

// Package splice passes bytes between two connections. The kernel moves them (splice(2)), so nothing is buffered here.
package splice

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// halfCloser is a connection of which one direction can end before the other.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// Join passes bytes between two connections until both directions have ended or the context does, and closes them. The
// end of one direction is passed on as such: an exec session whose input has ended still has output. An idle connection
// is kept; a dead peer is found by keep-alive and by unacknowledged data.
func Join(ctx context.Context, a, b net.Conn) {
	defer context.AfterFunc(ctx, func() {
		_ = a.Close()
		_ = b.Close()
	})()
	limitSilence(a)
	limitSilence(b)
	var directions sync.WaitGroup
	directions.Go(func() { pass(a, b) })
	directions.Go(func() { pass(b, a) })
	directions.Wait()
	_ = a.Close()
	_ = b.Close()
}

func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if end, ok := to.(halfCloser); ok && err == nil && end.CloseWrite() == nil {
		return
	}
	_ = to.Close() // broken: the other direction ends too
	_ = from.Close()
}

// limitSilence gives up on a peer that does not acknowledge what it was sent (tcp(7), TCP_USER_TIMEOUT).
func limitSilence(connection net.Conn) {
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(KeepAlive())
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int((30 * time.Second).Milliseconds()))
	})
}

// KeepAlive finds dead peers: a machine that is killed says no goodbye, since its network goes with it.
func KeepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}
}
