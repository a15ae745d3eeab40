// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"net"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
)

// A watch over HTTP/1.1 whose other side went away without a word is believed for as long as the kernel believes it,
// and no fact may be older than two minutes.
func TestDeadConnectionsAreNoticed(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	config := &rest.Config{}
	c, err := tuned(config).Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	conn, ok := c.(syscall.Conn)
	if !ok {
		t.Fatalf("a connection is a %T", c)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	seconds := 0
	if err := raw.Control(func(fd uintptr) {
		option := func(name int) int {
			n, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, name)
			if err != nil {
				t.Error(err)
			}
			return n
		}
		seconds = option(syscall.TCP_KEEPIDLE) + option(syscall.TCP_KEEPINTVL)*option(syscall.TCP_KEEPCNT)
	}); err != nil {
		t.Fatal(err)
	}
	if seconds < 20 || seconds > 60 {
		t.Errorf("a dead connection is noticed after %d seconds", seconds)
	}
	if config.Dial != nil {
		t.Error("the configuration of everybody was changed")
	}
}
