// SPDX-License-Identifier: Apache-2.0

// Package vpctest makes frames that a machine can send, honest and forged, for tests of what a VPC lets through.
package vpctest

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Types of frames.
const (
	IPv4  = unix.ETH_P_IP
	ARP   = unix.ETH_P_ARP
	IPv6  = unix.ETH_P_IPV6
	Other = 0x88b5 // local experiments, IEEE 802
)

// Everybody is the address of broadcasts.
var Everybody = net.HardwareAddr{255, 255, 255, 255, 255, 255}

// SourcePort is the port that datagrams come from.
const SourcePort = 4000

// Frame is an Ethernet frame.
func Frame(to, from net.HardwareAddr, kind uint16, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint16(append(bytes.Clone(to), from...), kind), payload...)
}

// Datagram is an IPv4 packet with a UDP datagram, whose checksum is left out (RFC 768).
func Datagram(from netip.Addr, to netip.AddrPort, data string) []byte {
	source, destination := from.As4(), to.Addr().As4()
	header := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	header = append(append(header, source[:]...), destination[:]...)
	binary.BigEndian.PutUint16(header[2:], uint16(len(header)+8+len(data))) //nolint:gosec // G115: a frame is short
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum))
	packet := binary.BigEndian.AppendUint16(header, SourcePort)
	packet = binary.BigEndian.AppendUint16(packet, to.Port())
	packet = binary.BigEndian.AppendUint16(packet, uint16(8+len(data))) //nolint:gosec // G115: a frame is short
	return append(append(packet, 0, 0), data...)
}

// Request is an ARP request for an address.
func Request(from net.HardwareAddr, sender, wanted netip.Addr) []byte {
	return arp(1, from, sender, net.HardwareAddr{0, 0, 0, 0, 0, 0}, wanted)
}

// Announcement is an ARP reply to everybody: the address has the hardware address.
func Announcement(hardware net.HardwareAddr, address netip.Addr) []byte {
	return arp(2, hardware, address, Everybody, address)
}

func arp(operation byte, from net.HardwareAddr, sender netip.Addr, to net.HardwareAddr, target netip.Addr) []byte {
	a, b := sender.As4(), target.As4()
	packet := append([]byte{0, 1, 8, 0, 6, 4, 0, operation}, from...)
	packet = append(append(packet, a[:]...), to...)
	return append(packet, b[:]...)
}
