// SPDX-License-Identifier: Apache-2.0

// Package proxyheader reads and writes the header of the PROXY protocol, version 2, by which a relay names the client
// of the connection that it passes on. It is for TCP over IPv4 alone, as machines of a VPC have it, with one extension:
// the VPC, as two VPCs may have the same addresses (haproxy.org/download/3.0/doc/proxy-protocol.txt).
//
// A header is as true as its sender: read it only where nobody but the relay can connect. Listener does so for a
// server.
package proxyheader

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
)

// Header says whose connection it is.
type Header struct {
	Source, Destination netip.AddrPort
	// VPC is the id of the VPC that both addresses are in.
	VPC string
}

const (
	fixedSize     = 16 // signature, version and command, family, length of the rest
	addressesSize = 12
	tlvSize       = 3 // type and length of an extension
	// typeVPC is the first of the types that are free for applications (PP2_TYPE_MIN_CUSTOM).
	typeVPC = 0xe0
	maxVPC  = 64
)

// start is what a header begins with: the signature, version 2 and the command PROXY, TCP over IPv4.
var start = append([]byte("\r\n\r\n\x00\r\nQUIT\n"), 0x21, 0x11)

var vpcPattern = regexp.MustCompile(`^vpc-[0-9a-f]{1,60}$`)

// ErrHeader means that a connection does not begin with such a header.
var ErrHeader = errors.New("the connection does not begin with a PROXY header for TCP over IPv4 in a VPC")

// Write writes a header. Both addresses must be of IPv4.
func Write(w io.Writer, h Header) error {
	if !h.Source.Addr().Is4() || !h.Destination.Addr().Is4() {
		return fmt.Errorf("a connection from %s to %s is not one over IPv4", h.Source, h.Destination)
	}
	if !vpcPattern.MatchString(h.VPC) {
		return fmt.Errorf("a connection from %s is in a VPC with the invalid id %q", h.Source, h.VPC)
	}
	header := addresses(h.Source, h.Destination, tlvSize+len(h.VPC))
	header = append(header, typeVPC)
	header = binary.BigEndian.AppendUint16(header, uint16(len(h.VPC))) //nolint:gosec // G115: the pattern bounds it
	_, err := w.Write(append(header, h.VPC...))
	return err
}

// WriteAddresses writes a header without the VPC, for programs other than Muster's. Both addresses must be of IPv4.
func WriteAddresses(w io.Writer, source, destination netip.AddrPort) error {
	if !source.Addr().Is4() || !destination.Addr().Is4() {
		return fmt.Errorf("a connection from %s to %s is not one over IPv4", source, destination)
	}
	_, err := w.Write(addresses(source, destination, 0))
	return err
}

// addresses is a header as far as the addresses, with the length of what follows.
func addresses(source, destination netip.AddrPort, more int) []byte {
	header := binary.BigEndian.AppendUint16(bytes.Clone(start), uint16(addressesSize+more)) //nolint:gosec // G115: a VPC's id is bounded by its pattern
	header = append(header, source.Addr().AsSlice()...)
	header = append(header, destination.Addr().AsSlice()...)
	header = binary.BigEndian.AppendUint16(header, source.Port())
	return binary.BigEndian.AppendUint16(header, destination.Port())
}

// Read reads a header and nothing behind it.
func Read(r io.Reader) (Header, error) {
	var fixed [fixedSize]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return Header{}, fmt.Errorf("%w: %w", ErrHeader, err)
	}
	length := int(binary.BigEndian.Uint16(fixed[len(start):]))
	if !bytes.HasPrefix(fixed[:], start) || length <= addressesSize+tlvSize || length > addressesSize+tlvSize+maxVPC {
		return Header{}, ErrHeader
	}
	rest := make([]byte, length)
	if _, err := io.ReadFull(r, rest); err != nil {
		return Header{}, fmt.Errorf("%w: %w", ErrHeader, err)
	}
	addresses, extension := rest[:addressesSize], rest[addressesSize:]
	vpc := string(extension[tlvSize:])
	if extension[0] != typeVPC || int(binary.BigEndian.Uint16(extension[1:])) != len(vpc) || !vpcPattern.MatchString(vpc) {
		return Header{}, ErrHeader
	}
	return Header{
		Source:      netip.AddrPortFrom(netip.AddrFrom4([4]byte(addresses[:4])), binary.BigEndian.Uint16(addresses[8:])),
		Destination: netip.AddrPortFrom(netip.AddrFrom4([4]byte(addresses[4:8])), binary.BigEndian.Uint16(addresses[10:])),
		VPC:         vpc,
	}, nil
}
