// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	// offloadSize is that of a virtio_net_hdr (linux/virtio_net.h): what the kernel has left to do about a packet, or
	// leaves to us.
	offloadSize = 10
	// largestSegment bounds the packets of TCP that are written whole; the kernel cuts them for the machines' links.
	largestSegment = 60 << 10

	flagNeedsChecksum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	cutTCPv4          = 1 // VIRTIO_NET_HDR_GSO_TCPV4
)

// tunLink is the network stack's end of the VPC's way out.
type tunLink struct {
	file *os.File
	mtu  uint32
	// echo takes echo requests, which the stack would answer by itself.
	echo func(packet header.IPv4)

	dispatcher atomic.Pointer[stack.NetworkDispatcher]
}

var (
	_ stack.LinkEndpoint = (*tunLink)(nil)
	_ stack.GSOEndpoint  = (*tunLink)(nil)
)

// run hands the packets from the VPC to the stack until the context ends, or the link does.
func (l *tunLink) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = l.file.SetReadDeadline(longAgo) })()
	packet := make([]byte, offloadSize+1<<16)
	for {
		n, err := l.file.Read(packet)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading packets from the VPC: %w", err)
		}
		if n > offloadSize {
			l.deliver(packet[offloadSize:n])
		}
	}
}

// deliver hands on one packet. Whatever is not IPv4 from one address to one other is dropped: it is for nobody outside.
func (l *tunLink) deliver(raw []byte) {
	packet := header.IPv4(raw)
	if !packet.IsValid(len(raw)) || !isUnicast(packet.SourceAddress()) || !isUnicast(packet.DestinationAddress()) {
		return
	}
	switch packet.TransportProtocol() {
	case header.TCPProtocolNumber, header.UDPProtocolNumber:
	case header.ICMPv4ProtocolNumber:
		l.echo(packet)
		return
	default:
		return
	}
	dispatcher := l.dispatcher.Load()
	if dispatcher == nil {
		return
	}
	inbound := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(raw)}) // which copies it
	(*dispatcher).DeliverNetworkPacket(ipv4.ProtocolNumber, inbound)
	inbound.DecRef()
}

func isUnicast(address tcpip.Address) bool {
	return !header.IsV4MulticastAddress(address) && address != header.IPv4Broadcast && address != header.IPv4Any && !header.IsV4LoopbackAddress(address)
}

// WritePackets implements [stack.LinkWriter].
func (l *tunLink) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	for i, packet := range packets.AsSlice() {
		if err := l.write(offload(packet), packet.AsSlices()); err != nil {
			return i, &tcpip.ErrNoBufferSpace{}
		}
	}
	return packets.Len(), nil
}

// offload says what the kernel is to do about a packet: finish its checksum, cut it into segments.
func offload(packet *stack.PacketBuffer) (h [offloadSize]byte) {
	how := packet.GSOOptions
	if how.Type == stack.GSONone {
		return h
	}
	little := binary.LittleEndian
	if how.NeedsCsum {
		h[0] = flagNeedsChecksum
		little.PutUint16(h[6:], how.L3HdrLen)
		little.PutUint16(h[8:], how.CsumOffset)
	}
	little.PutUint16(h[2:], uint16(packet.HeaderSize())) //nolint:gosec // G115: headers have a hundred bytes
	if how.Type == stack.GSOTCPv4 && packet.Data().Size() > int(how.MSS) {
		h[1] = cutTCPv4
		little.PutUint16(h[4:], how.MSS)
	}
	return h
}

var vectors = sync.Pool{New: func() any { v := make([][]byte, 0, 8); return &v }}

// write puts one packet on the link.
func (l *tunLink) write(offload [offloadSize]byte, parts [][]byte) error {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	v, _ := vectors.Get().(*[][]byte)
	*v = append(append((*v)[:0], offload[:]), parts...)
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for {
			_, failed = unix.Writev(int(fd), *v)
			if !errors.Is(failed, unix.EINTR) {
				return !errors.Is(failed, unix.EAGAIN)
			}
		}
	})
	clear(*v)
	vectors.Put(v)
	return errors.Join(err, failed)
}

// GSOMaxSize implements [stack.GSOEndpoint].
func (*tunLink) GSOMaxSize() uint32 { return largestSegment }

// SupportedGSO implements [stack.GSOEndpoint].
func (*tunLink) SupportedGSO() stack.SupportedGSO { return stack.HostGSOSupported }

// MTU implements [stack.LinkEndpoint].
func (l *tunLink) MTU() uint32 { return l.mtu }

// SetMTU implements [stack.LinkEndpoint]; it is fixed.
func (*tunLink) SetMTU(uint32) {}

// MaxHeaderLength implements [stack.LinkEndpoint].
func (*tunLink) MaxHeaderLength() uint16 { return 0 }

// LinkAddress implements [stack.LinkEndpoint].
func (*tunLink) LinkAddress() tcpip.LinkAddress { return "" }

// SetLinkAddress implements [stack.LinkEndpoint].
func (*tunLink) SetLinkAddress(tcpip.LinkAddress) {}

// Capabilities implements [stack.LinkEndpoint]. Machines leave checksums to be filled in by hardware, and their packets
// came by memory.
func (*tunLink) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}

// Attach implements [stack.LinkEndpoint].
func (l *tunLink) Attach(dispatcher stack.NetworkDispatcher) {
	if dispatcher == nil {
		l.dispatcher.Store(nil)
		return
	}
	l.dispatcher.Store(&dispatcher)
}

// IsAttached implements [stack.LinkEndpoint].
func (l *tunLink) IsAttached() bool { return l.dispatcher.Load() != nil }

// Wait implements [stack.LinkEndpoint].
func (*tunLink) Wait() {}

// ARPHardwareType implements [stack.LinkEndpoint].
func (*tunLink) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// AddHeader implements [stack.LinkEndpoint].
func (*tunLink) AddHeader(*stack.PacketBuffer) {}

// ParseHeader implements [stack.LinkEndpoint].
func (*tunLink) ParseHeader(*stack.PacketBuffer) bool { return true }

// Close implements [stack.LinkEndpoint].
func (*tunLink) Close() {}

// SetOnCloseAction implements [stack.LinkEndpoint].
func (*tunLink) SetOnCloseAction(func()) {}
