// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
)

// echo is a server that sends back what it gets, as fast as it comes.
func echo(tb testing.TB) netip.AddrPort {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) }()
		}
	}()
	return netip.MustParseAddrPort(listener.Addr().String())
}

// Bytes there and back over one connection, without and with a front in between.
func BenchmarkPass(b *testing.B) {
	direct := echo(b)
	for _, size := range []int{512, 64 << 10, 4 << 20} {
		for _, through := range []bool{false, true} {
			b.Run(fmt.Sprintf("bytes=%d/front=%v", size, through), func(b *testing.B) {
				address := direct.String()
				if through {
					listener, err := net.Listen("tcp", "127.0.0.1:0")
					if err != nil {
						b.Fatal(err)
					}
					defer func() { _ = listener.Close() }()
					address = listener.Addr().String()
					go func() {
						client, err := listener.Accept()
						if err != nil {
							return
						}
						if server, err := dial(b.Context(), direct); err == nil {
							join(b.Context(), client.(*net.TCPConn), server, func() *net.TCPConn { return nil }, func() {}) //nolint:forcetypeassert // of a TCP listener
						}
					}()
				}
				c, err := net.Dial("tcp", address)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				buffer, back := make([]byte, size), make([]byte, size)
				b.SetBytes(int64(size))
				for b.Loop() {
					go func() { _, _ = c.Write(buffer) }()
					if _, err := io.ReadFull(c, back); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
