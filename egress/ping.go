// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// idlePing is how long after its last packet a series of echo requests is taken for over.
const idlePing = 20 * time.Second

// pings are series of echo requests that leave by ping sockets (icmp(7)): sockets that can send echo requests and
// nothing else.
type pings struct {
	egress *egress
	mutex  sync.Mutex
	series map[pingKey]*ping
}

type pingKey struct {
	source, destination netip.Addr
	id                  uint16
}

type ping struct {
	own    *flow
	socket *os.File
	timer  *time.Timer
}

// echo sends on an echo request of a machine. Everything else of ICMP, and parts of packets, are dropped.
func (p *pings) echo(packet header.IPv4) {
	message := header.ICMPv4(packet.Payload())
	if packet.More() || packet.FragmentOffset() != 0 || len(message) < header.ICMPv4MinimumSize || message.Type() != header.ICMPv4Echo || message.Code() != 0 {
		return
	}
	key := pingKey{netip.AddrFrom4(packet.SourceAddress().As4()), netip.AddrFrom4(packet.DestinationAddress().As4()), message.Ident()}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	to, ok := p.series[key]
	if !ok {
		if to = p.begin(key); to == nil {
			return
		}
		p.series[key] = to
		p.egress.running.Go(func() { p.answers(key, to) })
	}
	to.timer.Reset(idlePing)
	request := append([]byte(nil), message...)
	if _, err := to.socket.Write(request); err != nil { // the kernel puts in an identifier of the host's, and the checksum
		to.own.end()
	}
}

// begin opens a socket for a series, unless that is refused.
func (p *pings) begin(key pingKey) *ping {
	e := p.egress
	between := ends{netip.AddrPortFrom(key.source, 0), netip.AddrPortFrom(key.destination, 0)}
	socket, err := pingSocket(key.destination)
	if err != nil {
		if errors.Is(err, unix.EACCES) {
			e.noPing.Do(func() {
				e.log.Warn("machines cannot ping beyond the VPC: net.ipv4.ping_group_range does not include this process's group", "group", unix.Getegid())
			})
		}
		return nil
	}
	// A deadline, not Close: who reads the answers closes it.
	end := sync.OnceFunc(func() { _ = socket.SetDeadline(longAgo) })
	to := &ping{own: &flow{machine: e.machine(key.source), destination: key.destination, end: end}, socket: socket}
	if !e.echoes.take(to.own, key.source) {
		e.over(between, to.own.machine, "icmp")
		_ = socket.Close()
		return nil
	}
	if refusal := e.gate.refuse(key.destination); refusal != "" { // asked when a change of the policy finds the flow; nothing was sent yet
		e.refused(between, refusal)
		_ = socket.Close()
		e.echoes.give(to.own)
		return nil
	}
	to.timer = time.AfterFunc(idlePing, end)
	return to
}

// pingSocket is connected: it hears its destination alone.
func pingSocket(destination netip.Addr) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: destination.As4()}); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "ping"), nil
}

// answers carries answers back until the series is over.
func (p *pings) answers(key pingKey, to *ping) {
	defer context.AfterFunc(p.egress.ctx, to.own.end)()
	_ = lazyRead(to.socket, false, chunks, func(read []byte) error {
		if len(read) >= header.ICMPv4MinimumSize && read[0] == byte(header.ICMPv4EchoReply) {
			p.egress.reply(key, read)
		}
		return nil
	})
	to.timer.Stop()
	p.mutex.Lock()
	delete(p.series, key)
	p.mutex.Unlock()
	_ = to.socket.Close()
	p.egress.echoes.give(to.own)
}

// reply writes an echo reply to a machine, with the identifier that it asked by.
func (e *egress) reply(key pingKey, message []byte) {
	if len(message) > int(e.link.mtu)-header.IPv4MinimumSize {
		return
	}
	packet := make([]byte, header.IPv4MinimumSize+len(message))
	ip := header.IPv4(packet)
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(packet)), TTL: 64, Protocol: uint8(header.ICMPv4ProtocolNumber), //nolint:gosec // G115: it is at most as long as the link's packets
		SrcAddr: tcpip.AddrFrom4(key.destination.As4()), DstAddr: tcpip.AddrFrom4(key.source.As4()),
	})
	ip.SetChecksum(^ip.CalculateChecksum())
	copy(ip.Payload(), message)
	icmp := header.ICMPv4(ip.Payload())
	icmp.SetIdent(key.id)
	icmp.SetChecksum(0)
	binary.BigEndian.PutUint16(icmp[2:], ^checksum.Checksum(icmp, 0))
	_ = e.link.write([offloadSize]byte{}, [][]byte{packet}) // it is lost, as packets are
}
