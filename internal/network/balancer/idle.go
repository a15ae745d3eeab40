// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// limitSilence finds dead peers by keep-alive, and gives up on one that does not acknowledge what it was sent (tcp(7),
// TCP_USER_TIMEOUT).
func limitSilence(connection net.Conn) {
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4})
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int((30 * time.Second).Milliseconds()))
		})
	}
}

// watchIdle calls a function when neither of two connections has sent or got a byte for so long, and not at all once
// what it returns is called. The kernel knows when that was, so a byte costs nothing here.
func watchIdle(limit time.Duration, expired func(), connections ...net.Conn) (stop func()) {
	if limit <= 0 {
		return func() {}
	}
	var mutex sync.Mutex
	var timer *time.Timer
	stopped := false
	var look func()
	look = func() {
		mutex.Lock()
		defer mutex.Unlock()
		if stopped {
			return
		}
		silent := limit
		for _, c := range connections {
			silent = min(silent, silence(c))
		}
		if silent >= limit {
			expired()
			return
		}
		timer = time.AfterFunc(limit-silent+time.Millisecond, look)
	}
	mutex.Lock()
	timer = time.AfterFunc(limit, look)
	mutex.Unlock()
	return func() {
		mutex.Lock()
		defer mutex.Unlock()
		stopped = true
		timer.Stop()
	}
}

// silence is the time since a connection carried a byte; a connection that cannot be asked is silent for ever.
func silence(connection net.Conn) time.Duration {
	const forEver = time.Duration(1<<63 - 1)
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return forEver
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return forEver
	}
	since := forEver
	err = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			since = time.Duration(min(info.Last_data_sent, info.Last_data_recv)) * time.Millisecond
		}
	})
	if err != nil {
		return forEver
	}
	return since
}
