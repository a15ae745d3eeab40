// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

const (
	nic = 1
	// buffered is how many bytes of a connection wait in each direction, at first and at most. The link is memory, so
	// little is enough.
	buffered     = 128 << 10
	mostBuffered = 512 << 10
	// timeWait is how long a connection's ports stay taken after its end: nothing is under way on a link that is
	// memory.
	timeWait = time.Second
)

// newStack makes a stack that takes whatever comes over the link for its own, whichever address it is for.
func newStack(link stack.LinkEndpoint) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	sack, moderate, wait := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true), tcpip.TCPTimeWaitTimeoutOption(timeWait)
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: buffered, Max: mostBuffered}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: buffered, Max: mostBuffered}
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &moderate, &wait, &receive, &send} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return nil, fmt.Errorf("setting %T: %s", option, err)
		}
	}
	for _, step := range []func() tcpip.Error{
		func() tcpip.Error { return s.CreateNIC(nic, link) },
		func() tcpip.Error { return s.SetPromiscuousMode(nic, true) },
		func() tcpip.Error { return s.SetSpoofing(nic, true) },
	} {
		if err := step(); err != nil {
			return nil, errors.New("making a network stack: " + err.String())
		}
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return s, nil
}

// ends are the two ends of a connection or flow: a machine or pod, and what it wants to reach.
type ends struct{ source, destination netip.AddrPort }

func endsOf(id stack.TransportEndpointID) ends {
	return ends{
		source:      netip.AddrPortFrom(netip.AddrFrom4(id.RemoteAddress.As4()), id.RemotePort),
		destination: netip.AddrPortFrom(netip.AddrFrom4(id.LocalAddress.As4()), id.LocalPort),
	}
}
