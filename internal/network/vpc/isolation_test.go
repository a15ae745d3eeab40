// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/vpc/vpctest"
	"muster.dev/muster/internal/platform/host"
)

// wire opens a machine's link for whole frames, all that come in included.
func wire(t *testing.T, machine *os.File) (send func([]byte), receive func(patience time.Duration) []byte) {
	t.Helper()
	var socket, index int
	err := host.InNetwork(machine, func() error {
		link, err := net.InterfaceByName(machineLink)
		if err != nil {
			return err
		}
		index = link.Index
		socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(hostOrder(unix.ETH_P_ALL)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	send = func(raw []byte) {
		t.Helper()
		if err := unix.Sendto(socket, raw, 0, &unix.SockaddrLinklayer{Ifindex: index, Halen: 6}); err != nil {
			t.Fatal(err)
		}
	}
	receive = func(patience time.Duration) []byte {
		t.Helper()
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			limit := unix.NsecToTimeval(int64(max(time.Until(deadline), time.Millisecond)))
			if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
				t.Fatal(err)
			}
			raw := make([]byte, 2048)
			length, from, err := unix.Recvfrom(socket, raw, 0)
			switch link, ok := from.(*unix.SockaddrLinklayer); {
			case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			case err != nil:
				t.Fatal(err)
			case ok && link.Ifindex == index && link.Pkttype != unix.PACKET_OUTGOING:
				return raw[:length]
			}
		}
		return nil
	}
	return send, receive
}

func hostOrder(v uint16) uint16 { return v<<8 | v>>8 }

// listenUDP hears datagrams in a namespace; the channel has the senders' addresses.
func listenUDP(t *testing.T, namespace *os.File, address string) <-chan netip.Addr {
	t.Helper()
	var socket net.PacketConn
	err := host.InNetwork(namespace, func() (err error) {
		socket, err = new(net.ListenConfig).ListenPacket(t.Context(), "udp4", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	heard := make(chan netip.Addr, 64)
	go func() {
		for {
			_, from, err := socket.ReadFrom(make([]byte, 64))
			if err != nil {
				return
			}
			heard <- netip.MustParseAddrPort(from.String()).Addr()
		}
	}()
	return heard
}

// A machine sends by its own address and those of its pods. Packets that it sends in another's name reach nobody,
// neither machines nor the VPC's services.
func TestSourcesAreChecked(t *testing.T) {
	n := newNetwork(t)
	routerMAC := n.routerMAC(netip.MustParseAddr(secondMachine))
	newMachine(t, n, firstMachine)
	forger, server := newMachine(t, n, secondMachine), newMachine(t, n, "192.168.64.13")
	for pods, machine := range map[string]string{"10.244.1.0/24": firstMachine, "10.244.2.0/24": secondMachine} {
		if err := n.SetRoute(Route{PodCIDR: netip.MustParsePrefix(pods), Machine: netip.MustParseAddr(machine)}); err != nil {
			t.Fatal(err)
		}
	}
	namespace, err := n.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	own := MAC(netip.MustParseAddr(secondMachine))
	send, _ := wire(t, forger)
	for _, to := range []struct {
		what, address string
		heard         <-chan netip.Addr
	}{
		{"another machine", "192.168.64.13:4000", listenUDP(t, server, "192.168.64.13:4000")},
		{"the VPC", "192.168.64.2:4000", listenUDP(t, namespace, "192.168.64.2:4000")},
		{"the metadata service", "169.254.169.254:4000", listenUDP(t, namespace, "169.254.169.254:4000")},
	} {
		destination := netip.MustParseAddrPort(to.address)
		for _, hardware := range []net.HardwareAddr{own, MAC(netip.MustParseAddr(firstMachine)), routerMAC} {
			for _, source := range []string{
				firstMachine, "192.168.64.13", "192.168.64.99", // machines: another, the one that is asked, none
				"10.244.1.7", "10.244.3.7", // pods: another's, nobody's
				"192.168.64.1", "192.168.64.2", "192.168.64.3", "169.254.169.254", "169.254.1.1",
				"192.168.64.0", "192.168.127.255", "255.255.255.255", "224.0.0.1", "0.0.0.0", "127.0.0.1", "203.0.113.7",
			} {
				send(vpctest.Frame(routerMAC, hardware, vpctest.IPv4, vpctest.Datagram(netip.MustParseAddr(source), destination, "forged")))
			}
		}
		var got []string
		for _, source := range []string{secondMachine, "10.244.2.7"} {
			send(vpctest.Frame(routerMAC, own, vpctest.IPv4, vpctest.Datagram(netip.MustParseAddr(source), destination, "good")))
		}
		for len(got) < 2 {
			select {
			case from := <-to.heard:
				got = append(got, from.String())
			case <-time.After(generous):
				t.Fatalf("%s heard %v only", to.what, got)
			}
		}
		select {
		case from := <-to.heard:
			got = append(got, from.String())
		case <-time.After(100 * time.Millisecond):
		}
		if want := []string{secondMachine, "10.244.2.7"}; !cmp.Equal(got, want) {
			t.Errorf("%s heard %v, want %v", to.what, got, want)
		}
	}
}

// Machines share no link: whatever one puts on its own, to everybody or to the other's hardware address, the other does
// not see it.
func TestMachinesShareNoLink(t *testing.T) {
	n := newNetwork(t)
	victim, forger := newMachine(t, n, firstMachine), newMachine(t, n, secondMachine)
	routerMAC := n.routerMAC(netip.MustParseAddr(secondMachine))
	send, _ := wire(t, forger)
	_, receive := wire(t, victim)
	own := MAC(netip.MustParseAddr(secondMachine))
	to := netip.MustParseAddrPort(firstMachine + ":4000")
	for _, destination := range []net.HardwareAddr{
		MAC(netip.MustParseAddr(firstMachine)), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x33, 0x33, 0, 0, 0, 1}, {1, 0, 0x5e, 0, 0, 1}, {1, 0x80, 0xc2, 0, 0, 0},
	} {
		for kind, payload := range map[uint16][]byte{
			vpctest.IPv4:  vpctest.Datagram(netip.MustParseAddr(firstMachine), to, "forged"),
			vpctest.ARP:   vpctest.Request(own, netip.MustParseAddr("192.168.64.1"), to.Addr()),
			vpctest.IPv6:  append([]byte{0x60, 0, 0, 0, 0, 8, 59, 1}, make([]byte, 40)...),
			vpctest.Other: bytes.Repeat([]byte{7}, 46),
		} {
			send(vpctest.Frame(destination, own, kind, payload))
		}
	}
	// A routed packet comes, and from the router's hardware address: the victim is listening.
	send(vpctest.Frame(routerMAC, own, vpctest.IPv4, vpctest.Datagram(netip.MustParseAddr(secondMachine), to, "good")))
	for {
		raw := receive(10 * time.Second)
		if raw == nil {
			t.Fatal("what was sent to the router did not come either")
		}
		if !bytes.Equal(raw[6:12], routerMAC) || binary.BigEndian.Uint16(raw[12:]) != vpctest.IPv4 {
			t.Errorf("it sees a frame from %s: %x", net.HardwareAddr(raw[6:12]), raw[12:])
			continue
		}
		if !bytes.HasSuffix(raw, []byte("good")) {
			t.Errorf("the router passed on: %x", raw)
			continue
		}
		return
	}
}

// The router answers who asks where it is, by ARP, and for nobody else. Announcements of machines do not change what it
// knows of them.
func TestTheRouterBelievesNobody(t *testing.T) {
	n := newNetwork(t)
	newMachine(t, n, firstMachine)
	forger := newMachine(t, n, secondMachine)
	send, receive := wire(t, forger)
	routerMAC := n.routerMAC(netip.MustParseAddr(secondMachine))
	own := MAC(netip.MustParseAddr(secondMachine))
	victim, itself, router := netip.MustParseAddr(firstMachine), netip.MustParseAddr(secondMachine), Router(cidr)
	for range 5 {
		announce(t, forger, firstMachine, own)
		announce(t, forger, secondMachine, MAC(victim))
		send(vpctest.Frame(vpctest.Everybody, own, vpctest.ARP, vpctest.Request(own, victim, router)))
		send(vpctest.Frame(vpctest.Everybody, own, vpctest.ARP, vpctest.Request(own, itself, victim)))
		send(vpctest.Frame(routerMAC, own, vpctest.ARP, vpctest.Request(own, itself, victim))) // a proxy would answer this without delay
	}
	send(vpctest.Frame(vpctest.Everybody, own, vpctest.ARP, vpctest.Request(own, itself, router)))
	for {
		raw := receive(10 * time.Second)
		if raw == nil {
			t.Fatal("the router does not answer")
		}
		if binary.BigEndian.Uint16(raw[12:]) != vpctest.ARP {
			continue
		}
		said, _ := netip.AddrFromSlice(raw[28:32])
		told, _ := netip.AddrFromSlice(raw[38:42])
		if said == router && told == itself && bytes.Equal(raw[22:28], routerMAC) {
			break
		}
		t.Errorf("%s is told that %s has %s", told, said, net.HardwareAddr(raw[22:28]))
	}
	namespace, err := n.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	known := map[string]string{}
	err = withHandle(namespace, func(h *netlink.Handle) error {
		entries, err := h.NeighList(0, unix.AF_INET)
		for _, entry := range entries {
			if entry.State&netlink.NUD_NOARP == 0 { // of lo
				known[entry.IP.String()] += entry.HardwareAddr.String()
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{firstMachine: MAC(victim).String(), secondMachine: own.String()}; !cmp.Equal(known, want) {
		t.Errorf("the router knows %v, want %v", known, want)
	}
}

// While a machine is away its pods' addresses are nobody's, and once it is back a route is set anew.
func TestRoutesGoWithTheMachine(t *testing.T) {
	n := newNetwork(t)
	machine := newMachine(t, n, firstMachine)
	route := Route{PodCIDR: netip.MustParsePrefix("10.244.1.0/24"), Machine: netip.MustParseAddr(firstMachine)}
	if err := n.SetRoute(route); err != nil {
		t.Fatal(err)
	}
	if err := n.Detach(route.Machine); err != nil {
		t.Fatal(err)
	}
	if routes, err := n.Routes(); err != nil || len(routes) > 0 {
		t.Errorf("routes of a machine that is gone: %v, %v", routes, err)
	}
	if err := n.SetRoute(route); err == nil {
		t.Error("a route leads to a machine that is not attached")
	}
	if err := n.DeleteRoute(route.PodCIDR); err != nil {
		t.Error(err)
	}
	if err := n.Attach(machine, interfaceOf(route.Machine.String(), openGroup)); err != nil {
		t.Fatal(err)
	}
	if err := n.SetRoute(route); err != nil {
		t.Error(err)
	}
	for _, own := range []string{"192.168.64.0", "192.168.64.1", "192.168.64.2", "192.168.64.3", "192.168.96.2", "192.168.79.255", "192.168.80.4"} {
		if err := n.Attach(machine, interfaceOf(own)); err == nil {
			t.Errorf("a machine has the address %s, which is reserved or in no subnet", own)
		}
	}
}
