// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/vpc/vpctest"
)

// Whatever a machine sends harms nothing. Nothing is let out here; answers go nowhere.
func FuzzPackets(f *testing.F) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		f.Fatal(err)
	}
	defer null.Close()
	link := &tunLink{file: null, mtu: 1500}
	s, e, stop := newDeaf(f, link)
	defer stop()
	for _, seed := range [][]byte{
		nil,
		{0x45},
		make([]byte, 20), make([]byte, 1500),
		vpctest.Datagram(machineA, netip.MustParseAddrPort("198.18.0.2:53"), "x"),
		vpctest.Datagram(machineA, netip.MustParseAddrPort("255.255.255.255:67"), "x"),
		{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, 172, 31, 0, 5, 198, 18, 0, 2, 8, 0, 0, 0, 0, 0, 0, 0},
		{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 172, 31, 0, 5, 198, 18, 0, 2, 0x10, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 1<<16 {
			return
		}
		link.deliver(raw)
		if n := e.connections.size() + e.datagrams.size() + e.echoes.size(); n != 0 {
			t.Errorf("%d flows of what is refused", n)
		}
		_ = s
	})
}

// newDeaf is a way out that lets nothing out.
func newDeaf(t testing.TB, link *tunLink) (*stack.Stack, *egress, func()) {
	t.Helper()
	s, err := newStack(link)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	log := slog.New(slog.DiscardHandler)
	l := defaultLimits()
	e := &egress{
		config: config{
			link: link, machine: func(source netip.Addr) netip.Addr { return source }, log: log,
			gate: &gate{read: func() (egresspolicy.Policy, []netip.Prefix, error) { return egresspolicy.Policy{}, nil, nil }, kind: func(netip.Addr) (int, error) { return 0, errors.New("not asked") }, log: log},
		},
		ctx: ctx, talk: rate.NewLimiter(0, 0),
		halfOpen: newFlows(l.halfOpen), connections: newFlows(l.connections), datagrams: newFlows(l.datagrams), echoes: newFlows(l.echoes),
	}
	e.gate.look()
	e.counted = newCounters(prometheus.NewRegistry(), e)
	link.echo = (&pings{egress: e, series: map[pingKey]*ping{}}).echo
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(s, 0, 1024, e.connect).HandlePacket)
	s.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s, e.datagram).HandlePacket)
	return s, e, func() { cancel(); endStack(s); e.running.Wait() }
}

// Packets to many, or from nobody, are dropped before they are looked at.
func TestOnlyOneToOne(t *testing.T) {
	for address, want := range map[string]bool{
		"198.18.0.2": true, "10.0.0.1": true, "127.0.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "0.0.0.0": false,
	} {
		packet := header.IPv4(vpctest.Datagram(machineA, netip.AddrPortFrom(netip.MustParseAddr(address), 53), "x"))
		if got := isUnicast(packet.DestinationAddress()); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}
