// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/vpc/vpctest"
	"muster.dev/muster/internal/platform/host"
)

const (
	firstMachine  = "192.168.64.11"
	secondMachine = "192.168.64.12"
)

// A machine that says it is another, by address, by hardware address or by both, gets no answer, and the other does not
// notice.
func TestForgery(t *testing.T) {
	n := newNetwork(t)
	victim, forger := newMachine(t, n, firstMachine), newMachine(t, n, secondMachine)
	stop := serveMetadata(t, n, directory{netip.MustParseAddr(firstMachine): 1, netip.MustParseAddr(secondMachine): 1})
	defer stop()

	var asked, unanswered atomic.Int64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { // the other machine goes on asking all the while
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			asked.Add(1)
			if _, err := tokenOf(victim, "", generous); err != nil {
				t.Errorf("the other machine: %v", err)
				unanswered.Add(1)
			}
		}
	}()

	inForger := func(change func(h *netlink.Handle, link netlink.Link) error) {
		t.Helper()
		err := withHandle(forger, func(h *netlink.Handle) error {
			link, err := h.LinkByName(machineLink)
			if err != nil {
				return err
			}
			return change(h, link)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	stolen := &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(firstMachine + "/32"))}
	inForger(func(h *netlink.Handle, link netlink.Link) error { return h.AddrReplace(link, stolen) })
	announce(t, forger, firstMachine, MAC(netip.MustParseAddr(secondMachine)))
	if got, err := tokenOf(forger, firstMachine, 1500*time.Millisecond); err == nil {
		t.Errorf("with another's address it got %q", got)
	}
	announce(t, forger, firstMachine, MAC(netip.MustParseAddr(firstMachine)))
	// Another's hardware address, and its own address.
	inForger(func(h *netlink.Handle, link netlink.Link) error {
		return h.LinkSetHardwareAddr(link, MAC(netip.MustParseAddr(firstMachine)))
	})
	if err := knowAgain(n, forger); err != nil {
		t.Fatal(err)
	}
	if got, err := tokenOf(forger, secondMachine, 1500*time.Millisecond); err == nil {
		t.Errorf("with another's hardware address it got %q", got)
	}
	if got, err := tokenOf(forger, firstMachine, 1500*time.Millisecond); err == nil {
		t.Errorf("with another's address and hardware address it got %q", got)
	}
	// Itself again, it is answered again: what was refused before was refused for what it was.
	inForger(func(h *netlink.Handle, link netlink.Link) error {
		return errors.Join(h.AddrDel(link, stolen), h.LinkSetHardwareAddr(link, MAC(netip.MustParseAddr(secondMachine))))
	})
	if err := knowAgain(n, forger); err != nil {
		t.Fatal(err)
	}
	if _, err := tokenOf(forger, "", generous); err != nil {
		t.Errorf("as itself: %v", err)
	}
	close(done)
	<-ended
	if asked.Load() < 20 || unanswered.Load() > 0 {
		t.Errorf("the other machine asked %d times and had no answer %d times", asked.Load(), unanswered.Load())
	}
}

// Packets of one machine to another reach no third machine, whatever the third one announces.
func TestMachinesAreNotOverheard(t *testing.T) {
	n := newNetwork(t)
	client, server, forger := newMachine(t, n, "192.168.64.13"), newMachine(t, n, firstMachine), newMachine(t, n, secondMachine)
	err := withHandle(forger, func(h *netlink.Handle) error {
		link, err := h.LinkByName(machineLink)
		if err != nil {
			return err
		}
		return h.AddrReplace(link, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(firstMachine + "/32"))})
	})
	if err != nil {
		t.Fatal(err)
	}
	answers := func(l net.Listener, who string) {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte(who))
				_ = c.Close()
			}
		}()
	}
	answers(listenIn(t, server, firstMachine+":80"), "server")
	answers(listenIn(t, forger, firstMachine+":80"), "forger")
	heard := map[string]int{}
	for range 20 {
		announce(t, forger, firstMachine, MAC(netip.MustParseAddr(secondMachine)))
		var c net.Conn
		err := host.InNetwork(client, func() (err error) {
			c, err = net.DialTimeout("tcp4", firstMachine+":80", 2*time.Second)
			return err
		})
		if err != nil {
			heard["nobody"]++
			continue
		}
		b := make([]byte, 16)
		k, _ := c.Read(b)
		heard[string(b[:k])]++
		_ = c.Close()
	}
	if heard["server"] != 20 {
		t.Errorf("who was heard, and how often: %v", heard)
	}
}

// knowAgain restores the permanent neighbours of a machine: the kernel forgets them when the hardware address changes.
func knowAgain(n *Network, machine *os.File) error {
	return withHandle(machine, func(h *netlink.Handle) error {
		link, err := h.LinkByName(machineLink)
		if err != nil {
			return err
		}
		return n.knowGateways(h, link, netip.MustParseAddr(secondMachine))
	})
}

// announce tells everybody by ARP, several times, that an address has a hardware address.
func announce(t *testing.T, namespace *os.File, address string, hardware net.HardwareAddr) {
	t.Helper()
	err := host.InNetwork(namespace, func() error {
		link, err := net.InterfaceByName(machineLink)
		if err != nil {
			return err
		}
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(socket) }()
		frame := vpctest.Frame(vpctest.Everybody, hardware, vpctest.ARP, vpctest.Announcement(hardware, netip.MustParseAddr(address)))
		for range 5 {
			if err := unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Index, Halen: 6}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A machine that says it is the metadata service, the router or the API server is not believed by others.
func TestFalseService(t *testing.T) {
	n := newNetwork(t)
	victim, forger := newMachine(t, n, firstMachine), newMachine(t, n, secondMachine)
	stop := serveMetadata(t, n, directory{netip.MustParseAddr(firstMachine): 1})
	defer stop()
	err := withHandle(forger, func(h *netlink.Handle) error {
		link, err := h.LinkByName(machineLink)
		if err != nil {
			return err
		}
		return h.AddrReplace(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(Metadata(), 32))})
	})
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 16)
	listener := listenIn(t, forger, netip.AddrPortFrom(Metadata(), MetadataPort).String())
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			heard <- connection.RemoteAddr().String()
			_ = connection.Close()
		}
	}()
	for range 10 {
		announce(t, forger, Metadata().String(), MAC(netip.MustParseAddr(secondMachine)))
		if _, err := tokenOf(victim, "", generous); err != nil {
			t.Errorf("the machine was not answered: %v", err)
		}
	}
	// Who is believed is not left to who answers first.
	for _, ip := range []netip.Addr{Router(cidr), Metadata()} {
		announce(t, forger, ip.String(), MAC(netip.MustParseAddr(secondMachine)))
		if got := permanent(t, victim, ip); !bytes.Equal(got, n.routerMAC(netip.MustParseAddr(firstMachine))) {
			t.Errorf("the machine takes %s for %s", got, ip)
		}
	}
	select {
	case who := <-heard:
		if strings.HasPrefix(who, firstMachine) {
			t.Errorf("%s asked the false service", who)
		}
	default:
	}
}

// permanent is the hardware address that a machine has for an address, once and for all.
func permanent(t *testing.T, machine *os.File, ip netip.Addr) (hardware net.HardwareAddr) {
	t.Helper()
	err := withHandle(machine, func(h *netlink.Handle) error {
		link, err := h.LinkByName(machineLink)
		if err != nil {
			return err
		}
		known, err := h.NeighList(link.Attrs().Index, unix.AF_INET)
		for _, neighbour := range known {
			if neighbour.IP.Equal(ip.AsSlice()) && neighbour.State == netlink.NUD_PERMANENT {
				hardware = neighbour.HardwareAddr
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hardware
}

// The missing steps of an attachment that was cut short are done when the relay starts.
func TestPin(t *testing.T) {
	n := newNetwork(t)
	newMachine(t, n, firstMachine)
	inVPC := func(fn func(h *netlink.Handle, link netlink.Link) error) {
		t.Helper()
		namespace, err := n.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer namespace.Close()
		if err := withHandle(namespace, func(h *netlink.Handle) error {
			link, err := h.LinkByName("vm-c0a8400b")
			if err != nil {
				return err
			}
			return fn(h, link)
		}); err != nil {
			t.Fatal(err)
		}
	}
	ip := netip.MustParseAddr(firstMachine)
	pinned := func() (neighbours, routes int) {
		t.Helper()
		inVPC(func(h *netlink.Handle, link netlink.Link) error {
			known, err := h.NeighList(link.Attrs().Index, unix.AF_INET)
			if err != nil {
				return err
			}
			for _, neighbour := range known {
				if neighbour.IP.Equal(ip.AsSlice()) && neighbour.State == netlink.NUD_PERMANENT && bytes.Equal(neighbour.HardwareAddr, MAC(ip)) {
					neighbours++
				}
			}
			all, err := h.RouteList(link, netlink.FAMILY_V4)
			for _, route := range all {
				if route.Dst.String() == firstMachine+"/32" && route.Src.String() == Router(cidr).String() {
					routes++
				}
			}
			return err
		})
		return neighbours, routes
	}
	if neighbours, routes := pinned(); neighbours != 1 || routes != 1 {
		t.Errorf("after Attach: %d neighbours, %d routes", neighbours, routes)
	}
	inVPC(func(h *netlink.Handle, link netlink.Link) error { return h.LinkSetDown(link) }) // which takes both along
	if neighbours, routes := pinned(); neighbours != 0 || routes != 0 {
		t.Errorf("of a link that is down: %d neighbours, %d routes", neighbours, routes)
	}
	if err := n.Pin(); err != nil {
		t.Fatal(err)
	}
	if neighbours, routes := pinned(); neighbours != 1 || routes != 1 {
		t.Errorf("after Pin: %d neighbours, %d routes", neighbours, routes)
	}
	for name, want := range map[string]bool{"vm-c0a8400b": true, "vm-c0a840": false, "vpc0": false, "vm-zzzzzzzz": false} {
		if _, ok := attachmentNamed(name); ok != want {
			t.Errorf("%s is a machine's link: %v", name, ok)
		}
	}
}
