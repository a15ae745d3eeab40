// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/network/vpc/vpctest"
	"muster.dev/muster/internal/platform/host"
)

// Ranges of the first subnet, for pods of its two machines, and one of the other subnet.
const firstPods, secondPods, otherPods = "192.168.79.128/25", "192.168.79.0/25", "192.168.111.128/25"

func withPods(address, pods string, groups ...string) Interface {
	own := interfaceOf(address, groups...)
	own.PodRange = netip.MustParsePrefix(pods)
	return own
}

// givePod gives a machine an address of its pods.
func givePod(t *testing.T, machine *os.File, address string) {
	t.Helper()
	if err := withHandle(machine, func(h *netlink.Handle) error {
		lo, err := h.LinkByName("lo")
		if err != nil {
			return err
		}
		return h.AddrReplace(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(address + "/32"))})
	}); err != nil {
		t.Fatal(err)
	}
}

// say sends a datagram from an address.
func say(t *testing.T, from *os.File, source, target, text string) {
	t.Helper()
	if err := host.InNetwork(from, func() error {
		connection, err := (&net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(source)}}).DialContext(t.Context(), "udp4", target)
		if err != nil {
			return err
		}
		defer connection.Close()
		_, err = io.WriteString(connection, text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// heardFrom is who was heard within a time, "" if nobody was.
func heardFrom(t *testing.T, heard <-chan netip.Addr, within time.Duration) string {
	t.Helper()
	select {
	case from := <-heard:
		return from.String()
	case <-time.After(within):
		return ""
	}
}

// Pods whose addresses are of the VPC, of their machine's subnet or of another one, reach each other and machines by
// them, from the attachment on and whoever ends; nobody else can use them, and what is sent to them is their machine's.
func TestPodsOfTheSubnet(t *testing.T) {
	n := newNetwork(t)
	client, server := newMachineWith(t, n, withPods(firstMachine, firstPods, openGroup)), newMachineWith(t, n, withPods(secondMachine, otherPods, openGroup))
	forger := newMachine(t, n, "192.168.64.13")
	const clientPod, serverPod = "192.168.79.130", "192.168.111.135"
	givePod(t, client, clientPod)
	givePod(t, server, serverPod)
	toPod, toMachine := listenUDP(t, server, serverPod+":4000"), listenUDP(t, server, secondMachine+":4001")
	talk := func() {
		t.Helper()
		say(t, client, clientPod, serverPod+":4000", "to a pod")
		if got := heardFrom(t, toPod, generous); got != clientPod {
			t.Errorf("the pod hears %q", got)
		}
		say(t, client, clientPod, secondMachine+":4001", "to a machine")
		if got := heardFrom(t, toMachine, generous); got != clientPod {
			t.Errorf("the machine hears %q", got)
		}
	}
	talk()

	// Another machine that says it were the pod, at its link or at its pods'.
	send, _ := wire(t, forger)
	hardware := MAC(netip.MustParseAddr("192.168.64.13"))
	for _, source := range []string{clientPod, serverPod, "192.168.79.200"} {
		send(vpctest.Frame(n.routerMAC(netip.MustParseAddr("192.168.64.13")), hardware, vpctest.IPv4, vpctest.Datagram(netip.MustParseAddr(source), netip.MustParseAddrPort(serverPod+":4000"), "forged")))
	}
	if got := heardFrom(t, toPod, silence); got != "" {
		t.Errorf("the pod hears %s from a machine that is not its", got)
	}

	// A route that is lost comes back, and none leads elsewhere.
	for _, route := range []Route{
		{netip.MustParsePrefix(firstPods), netip.MustParseAddr("192.168.64.13")},
		{netip.MustParsePrefix(firstPods), netip.MustParseAddr(secondMachine)},
		{netip.MustParsePrefix("192.168.79.128/26"), netip.MustParseAddr(firstMachine)},
		{netip.MustParsePrefix("192.168.78.0/25"), netip.MustParseAddr(firstMachine)},
	} {
		if err := n.SetRoute(route); err == nil {
			t.Errorf("%s leads to %s", route.PodCIDR, route.Machine)
		}
	}
	for name, mend := range map[string]func() error{
		"at the start of a process": n.Pin,
		"by the controller": func() error {
			return n.SetRoute(Route{netip.MustParsePrefix(firstPods), netip.MustParseAddr(firstMachine)})
		},
	} {
		if err := n.DeleteRoute(netip.MustParsePrefix(firstPods)); err != nil {
			t.Fatal(err)
		}
		if err := mend(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		talk()
	}
	// A later change of groups leaves the range.
	if err := n.SetSecurity([]securitygroup.Group{open()}, []Interface{interfaceOf(firstMachine, openGroup)}); err != nil {
		t.Fatal(err)
	}
	if pods, err := n.podRangeOf(netip.MustParseAddr(firstMachine)); err != nil || pods.String() != firstPods {
		t.Errorf("the range is %s, %v", pods, err)
	}
	namespace, err := n.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	owners, err := newOwners(namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer owners.handle.Close()
	for address, want := range map[string]string{clientPod: firstMachine, serverPod: secondMachine, secondMachine: secondMachine, "192.168.79.255": firstMachine, "192.168.70.1": "192.168.70.1", "192.168.64.2": "192.168.64.2"} {
		if got := owners.of(netip.MustParseAddr(address)); got.String() != want {
			t.Errorf("%s is %s's, want %s", address, got, want)
		}
	}
	// The API server of the pod's cluster reaches it, another one does not.
	e := endpointOf("127.0.0.1:1", "/x")
	for target, want := range map[string]bool{clientPod: true, serverPod: false, "192.168.79.131": true, "192.168.70.1": false} {
		got, err := n.reaches(e, owners, inventory{firstMachine: clusterName, secondMachine: "two"}, netip.AddrPortFrom(netip.MustParseAddr(target), 443), true)
		if err != nil || got != want {
			t.Errorf("%s is reached: %v, %v", target, got, err)
		}
	}

	if err := n.Detach(netip.MustParseAddr(firstMachine)); err != nil {
		t.Fatal(err)
	}
	if routes, err := n.Routes(); err != nil || len(routes) != 1 || routes[0].PodCIDR.String() != otherPods {
		t.Errorf("routes %v, %v", routes, err)
	}
	next := newMachineWith(t, n, withPods("192.168.64.14", firstPods, openGroup))
	givePod(t, next, clientPod)
	say(t, next, clientPod, serverPod+":4000", "the next one")
	if got := heardFrom(t, toPod, generous); got != clientPod {
		t.Errorf("of the next machine with the range the pod hears %q", got)
	}
}

// A pod's traffic is its machine's with addresses of the subnet, or of another one, too.
func TestGroupsOfPodsOfTheSubnet(t *testing.T) {
	for pods, client := range map[string]string{firstPods: "192.168.79.130", otherPods: "192.168.111.130"} {
		t.Run(pods, func(t *testing.T) { groupsOfPods(t, pods, client) })
	}
}

func groupsOfPods(t *testing.T, clientPods, clientPod string) {
	t.Helper()
	n := newNetwork(t)
	client, server := newMachineWith(t, n, withPods(firstMachine, clientPods, clients)), newMachineWith(t, n, withPods(secondMachine, secondPods, servers))
	givePod(t, client, clientPod)
	givePod(t, server, "192.168.79.7")
	repeat(t, listenIn(t, server, "192.168.79.7:80"))
	for peer, want := range map[string]bool{clients: true, firstMachine + "/32": true, clientPods: true, "192.168.64.0/20": true, servers: false, secondPods: false, secondMachine + "/32": false} {
		set(t, n, sender(clients), group(servers, rule(securitygroup.Ingress, "tcp", 80, peer)))
		err := host.InNetwork(client, func() error {
			connection, err := (&net.Dialer{Timeout: 700 * time.Millisecond, LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientPod)}}).DialContext(t.Context(), "tcp4", "192.168.79.7:80")
			if err == nil {
				_ = connection.Close()
			}
			return err
		})
		if got := err == nil; got != want {
			t.Errorf("from %s: %v, want %v", peer, got, want)
		}
	}
}

// A range that is not the machine's alone is not attached.
func TestPodRangesApart(t *testing.T) {
	n := newNetwork(t)
	newMachineWith(t, n, withPods(firstMachine, firstPods, openGroup))
	newMachine(t, n, "192.168.70.9")
	e := endpointOf("127.0.0.1:1", "/x")
	if err := n.SetEndpoint(e); err != nil {
		t.Fatal(err)
	}
	for name, own := range map[string]Interface{
		"another's range":           withPods(secondMachine, firstPods),
		"a part of it":              withPods(secondMachine, "192.168.79.192/26"),
		"an address in it":          interfaceOf("192.168.79.200"),
		"another's address":         withPods(secondMachine, "192.168.70.0/25"),
		"its own address":           withPods("192.168.72.9", "192.168.72.0/25"),
		"an endpoint's address":     withPods(secondMachine, "192.168.64.0/29"),
		"reserved addresses":        withPods(secondMachine, "192.168.64.0/25"),
		"between subnets":           withPods(secondMachine, "192.168.80.0/25"),
		"reserved ones elsewhere":   withPods(secondMachine, "192.168.96.0/25"),
		"larger than another":       withPods(secondMachine, "192.168.96.0/19"),
		"larger than the subnet":    withPods(secondMachine, "192.168.64.0/19"),
		"elsewhere":                 withPods(secondMachine, "10.244.1.0/24"),
		"addresses, and no network": withPods(secondMachine, "192.168.78.1/25"),
	} {
		if err := n.Attach(newNamespace(t), own); err == nil || !strings.Contains(err.Error(), "attaching machine") {
			t.Errorf("%s: %v", name, errors.Unwrap(err))
		}
	}
	if err := n.Attach(newNamespace(t), withPods(firstMachine, firstPods)); err != nil {
		t.Errorf("once more: %v", err)
	}
}
