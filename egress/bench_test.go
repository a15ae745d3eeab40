// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"os"
	"testing"

	"muster.dev/muster/internal/platform/host"
)

// BenchmarkWayOut measures a machine's connections beside the host's own, to the same server and in turns: bytes in
// either direction, and connections that are opened, used for one byte each way, and closed.
//
//	go -C egress test -run '^$' -bench . -benchtime 3s
func BenchmarkWayOut(b *testing.B) {
	w := newWorld(b, nat())
	m := w.machine(firstMachine, openGroup)
	listenIn(b, w.far, ":80", func(c *net.TCPConn) { defer c.Close(); _, _ = io.Copy(io.Discard, c) })
	listenIn(b, w.far, ":81", func(c *net.TCPConn) {
		defer c.Close()
		for chunk := make([]byte, 256<<10); ; {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	})
	listenIn(b, w.far, ":82", echo)
	packetsIn(b, w.far, ":83")
	for _, from := range []struct {
		name      string
		namespace *os.File
	}{{"host", w.host}, {"machine", m}} {
		b.Run("upload/"+from.name, func(b *testing.B) {
			c := dialBench(b, from.namespace, "tcp4", farAddress+":80")
			chunk := make([]byte, 256<<10)
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if _, err := c.Write(chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("download/"+from.name, func(b *testing.B) {
			c := dialBench(b, from.namespace, "tcp4", farAddress+":81")
			chunk := make([]byte, 256<<10)
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if _, err := io.ReadFull(c, chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("connections/"+from.name, func(b *testing.B) {
			one := make([]byte, 1)
			inNamespace(b, from.namespace, func() error {
				for b.Loop() {
					c, err := net.Dial("tcp4", farAddress+":82")
					if err != nil {
						return err
					}
					_, err = c.Write(one)
					if err == nil {
						_, err = io.ReadFull(c, one)
					}
					if err != nil {
						return err
					}
					_ = c.Close()
				}
				return nil
			})
		})
		b.Run("datagrams/"+from.name, func(b *testing.B) { // sent in sequence: the time is a round trip's
			c := dialBench(b, from.namespace, "udp4", farAddress+":83")
			datagram := make([]byte, 100)
			for b.Loop() {
				if _, err := c.Write(datagram); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Read(datagram); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func dialBench(b *testing.B, namespace *os.File, network, address string) net.Conn {
	b.Helper()
	var connection net.Conn
	inNamespace(b, namespace, func() (err error) {
		connection, err = (&net.Dialer{FallbackDelay: -1}).Dial(network, address)
		return err
	})
	b.Cleanup(func() { _ = connection.Close() })
	return connection
}

func inNamespace(b *testing.B, namespace *os.File, fn func() error) {
	b.Helper()
	if err := host.InNetwork(namespace, fn); err != nil {
		b.Fatal(err)
	}
}
