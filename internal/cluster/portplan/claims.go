// SPDX-License-Identifier: Apache-2.0

package portplan

import (
	"io"
	"net"
	"strconv"
)

// claims are the ports that this process has for itself among all Musters of the host, also while nothing listens on them yet. A claim is an abstract
// socket of the port's name, which the kernel gives to one process at a time, in the same network namespace that the port is of, and takes back
// when that process ends.
type claims struct {
	address string // that the ports are of
	held    map[int]io.Closer
}

func newClaims(address string) *claims { return &claims{address: address, held: map[int]io.Closer{}} }

// take claims a port. It reports whether it is this process's now.
func (c *claims) take(port int) bool {
	if c.held[port] != nil {
		return true
	}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@muster/port/" + net.JoinHostPort(c.address, strconv.Itoa(port)), Net: "unixgram"})
	if err != nil {
		return false
	}
	c.held[port] = socket
	return true
}

// keep gives back all claims but those to some ports, and claims these as far as nobody else has.
func (c *claims) keep(ports map[int]bool) {
	for port, socket := range c.held {
		if !ports[port] {
			_ = socket.Close()
			delete(c.held, port)
		}
	}
	for port := range ports {
		c.take(port)
	}
}
