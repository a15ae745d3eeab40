// SPDX-License-Identifier: Apache-2.0

// Package proxyheader reads and writes the header of the PROXY protocol, version 2, by which a relay names the client of the connection
// that it passes on. It is for TCP over IPv4 alone, as machines of a VPC have it, and has no extensions
// (haproxy.org/download/3.0/doc/proxy-protocol.txt).
//
// A header is as true as its sender: read it only where nobody but the relay can connect.
package proxyheader

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Size is how many bytes a header has.
const Size = 28

// The parts of a header before the addresses: the signature, version 2 and the command PROXY, TCP over IPv4, and the length of the rest.
var start = append([]byte("\r\n\r\n\x00\r\nQUIT\n"), 0x21, 0x11, 0x00, 0x0c)

// ErrHeader means that a connection does not begin with such a header.
var ErrHeader = errors.New("the connection does not begin with a PROXY header for TCP over IPv4")

// Write writes a header. Both addresses must be of IPv4.
func Write(w io.Writer, source, destination netip.AddrPort) error {
	if !source.Addr().Is4() || !destination.Addr().Is4() {
		return fmt.Errorf("a connection from %s to %s is not one over IPv4", source, destination)
	}
	header := append(make([]byte, 0, Size), start...)
	header = append(header, source.Addr().AsSlice()...)
	header = append(header, destination.Addr().AsSlice()...)
	header = binary.BigEndian.AppendUint16(header, source.Port())
	header = binary.BigEndian.AppendUint16(header, destination.Port())
	_, err := w.Write(header)
	return err
}

// Read reads a header and nothing behind it.
func Read(r io.Reader) (source, destination netip.AddrPort, err error) {
	var header [Size]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return source, destination, fmt.Errorf("%w: %w", ErrHeader, err)
	}
	rest, ok := bytes.CutPrefix(header[:], start)
	if !ok {
		return source, destination, ErrHeader
	}
	source = netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest[:4])), binary.BigEndian.Uint16(rest[8:]))
	destination = netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest[4:8])), binary.BigEndian.Uint16(rest[10:]))
	return source, destination, nil
}
