// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/vpc/vpctest"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/host"
)

const outside = "198.18.0.2"

// packetsOf reads what comes out of the VPC until the test ends.
func packetsOf(t *testing.T, w *WayOut) <-chan []byte {
	t.Helper()
	packets := make(chan []byte, 100)
	go func() {
		for {
			packet := make([]byte, 2000)
			n, err := w.File().Read(packet)
			if err != nil {
				return
			}
			packets <- packet[10:n]
		}
	}()
	return packets
}

// next is the next packet, nil if none comes.
func next(packets <-chan []byte, patience time.Duration) []byte {
	select {
	case packet := <-packets:
		return packet
	case <-time.After(patience):
		return nil
	}
}

// sendFrame sends a frame over a machine's link as it is.
func sendFrame(t *testing.T, namespace *os.File, frame []byte) {
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
		return unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Index, Halen: 6})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Packets to the outside come out of the one file, with their sender's address, and only packets that the sender's
// groups let through.
func TestWayOut(t *testing.T) {
	n := newNetwork(t)
	m := newMachine(t, n, "192.168.64.11")
	if _, err := dialIn(t, m, outside+":80"); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("without a way out: %v", err)
	}
	w, err := n.OpenWayOut()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.OpenWayOut(); !errors.Is(err, filelock.ErrTaken) {
		t.Errorf("a second way out: %v", err)
	}
	packets := packetsOf(t, w)
	send := func(source, to, text string) {
		t.Helper()
		frame := vpctest.Frame(n.routerMAC(netip.MustParseAddr("192.168.64.11")), MAC(netip.MustParseAddr("192.168.64.11")), vpctest.IPv4,
			vpctest.Datagram(netip.MustParseAddr(source), netip.MustParseAddrPort(to), text))
		sendFrame(t, m, frame)
	}
	send("192.168.64.11", outside+":53", "honest")
	packet := next(packets, 5*time.Second)
	if packet == nil || netip.AddrFrom4([4]byte(packet[12:16])).String() != "192.168.64.11" || !strings.HasSuffix(string(packet), "honest") {
		t.Fatalf("what came out: %q", packet)
	}
	// A default route does not make every source a good one, and what is for the VPC stays in it.
	for _, source := range []string{outside, "1.1.1.1", "192.168.64.12", "192.168.99.99", "10.244.3.4", "127.0.0.1"} {
		send(source, outside+":53", "forged")
	}
	send("192.168.64.11", "192.168.99.99:53", "for nobody in the VPC")
	closed := newMachineIn(t, n, "192.168.64.13")
	if _, err := dialIn(t, closed, outside+":80"); err == nil {
		t.Error("a machine without a group got out")
	}
	if packet := next(packets, 300*time.Millisecond); packet != nil {
		t.Errorf("what came out: %q", packet)
	}
	if got := w.Machine(netip.MustParseAddr("10.244.3.4")); got.String() != "10.244.3.4" {
		t.Errorf("a pod without a route is of machine %s", got)
	}
	if err := n.SetRoute(Route{PodCIDR: netip.MustParsePrefix("10.244.3.0/24"), Machine: netip.MustParseAddr("192.168.64.11")}); err != nil {
		t.Fatal(err)
	}
	if got := w.Machine(netip.MustParseAddr("10.244.3.4")); got.String() != "192.168.64.11" {
		t.Errorf("a pod is of machine %s", got)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := dialIn(t, m, outside+":80"); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("after the way out was closed: %v", err)
	}
	if w, err = n.OpenWayOut(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Settings are as they are on disk at that moment: what may leave, and the ranges that mean somebody else outside.
func TestWayOutSettings(t *testing.T) {
	root := t.TempDir()
	policy := egresspolicy.Policy{Mode: egresspolicy.NAT, Denied: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}}
	description := Description{ID: vpcID, CIDR: cidr, Egress: policy, Subnets: []Subnet{{ID: "subnet-0123456789abcdef0", Zone: "us-east-1a", CIDR: subnets[0]}}}
	if err := Describe(root, description); err != nil {
		t.Fatal(err)
	}
	n, err := Open(root, vpcID)
	if err != nil {
		t.Fatal(err)
	}
	w := &WayOut{network: n}
	got, own, err := w.Settings()
	if err != nil || !got.Equal(policy) || len(own) != 1 || own[0] != cidr {
		t.Errorf("settings are %+v, %v, %v", got, own, err)
	}
	e := Endpoint{Cluster: "one", Addresses: []netip.Addr{netip.MustParseAddr("192.168.64.4")}, APIServer: netip.MustParseAddrPort("127.0.0.1:6443"), EgressSocket: "/run/one.sock", PodCIDR: podCIDR}
	if err := n.SetEndpoint(e); err != nil {
		t.Fatal(err)
	}
	if _, own, err = w.Settings(); err != nil || len(own) != 2 || own[1] != podCIDR {
		t.Errorf("with a cluster: %v, %v", own, err)
	}
	description.Egress.Mode = "Everything"
	if err := Describe(root, description); err == nil || !strings.Contains(err.Error(), "egress.mode") {
		t.Errorf("an unknown mode: %v", err)
	}
}
