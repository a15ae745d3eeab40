// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/loadbalancer"
)

// ownHost says that a test runs in a network namespace of its own, which is its host.
const ownHost = "MUSTER_TEST_OWN_HOST"

// onOwnHost runs the test again in a network namespace of its own, so that it can give the host addresses, and reports
// whether this is that run.
func onOwnHost(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownHost) != "" {
		link, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), ownHost+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("on a host of its own: %v\n%s", err, out)
	}
	return false
}

// An address that the host does not have is said to be missing. It is listened on once the host has it, and clients are
// seen as who they are.
func TestAnAddressThatTheHostGetsLater(t *testing.T) {
	if !onOwnHost(t) {
		return
	}
	const address = "198.51.100.7"
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", named("a"))
	b := loadbalancer.Balancer{
		Cluster: cluster, Namespace: "shop", Service: "web", UID: "1", DNSName: "web.example", Address: netip.MustParseAddr(balancerA),
		HostAddress: netip.MustParseAddr(address), Spec: loadbalancer.Spec{
			IdleSeconds: 3600, SourceRanges: []netip.Prefix{netip.MustParsePrefix(address + "/32")},
			Listeners: []loadbalancer.Listener{{Protocol: loadbalancer.TCP, Port: 80}, {Protocol: loadbalancer.UDP, Port: 80}},
		},
	}
	for i := range b.Listeners {
		b.Listeners[i].Targets = []loadbalancer.Target{{Address: netip.MustParseAddrPort(machineA + ":8080")}}
	}
	w.must(w.network.SetBalancer(b))
	every := func(want PlaceStatus) func() error {
		return func() error {
			status := w.server.Status()
			if len(status.Balancers) != 1 || len(status.Balancers[0].Listeners) != 2 {
				return fmt.Errorf("%+v", status)
			}
			for _, l := range status.Balancers[0].Listeners {
				if l.Host.Open != want.Open || l.Host.Code != want.Code || !l.VPC.Open {
					return fmt.Errorf("%+v", l)
				}
			}
			return nil
		}
	}
	w.eventually("the address is missing", every(PlaceStatus{Code: AddressUnavailable}))

	link, err := netlink.LinkByName("lo")
	w.must(err)
	w.must(netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address).To4(), Mask: net.CIDRMask(32, 32)}}))
	w.eventually("it listens there", every(PlaceStatus{Open: true}))
	if line, _, err := w.greeting(fromHost, address+":80"); err != nil || !strings.HasPrefix(line, "a ") {
		t.Errorf("by the address: %q, %v", line, err)
	}

	b.SourceRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	w.must(w.network.SetBalancer(b))
	w.eventually("others' connections are refused", func() error {
		if line, _, err := w.greeting(fromHost, address+":80"); err == nil {
			return fmt.Errorf("%q", line)
		} else if !errors.Is(err, unix.ECONNRESET) {
			return err
		}
		return nil
	})
}

// A balancer that was internal gets an address on the host. Nobody's connection in the VPC ends by it.
func TestAnInternalBalancerOpensOnTheHost(t *testing.T) {
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", named("a"))
	internal := func(b *loadbalancer.Balancer) {
		tcp(machineA + ":8080")(b)
		b.Internal, b.HostAddress = true, netip.Addr{}
	}
	w.set(internal)
	_, kept, err := w.greeting(machineA, inVPCAt)
	w.must(err)
	w.set(tcp(machineA + ":8080"))
	if line, _, err := w.greeting(fromHost, onHostAt); err != nil || !strings.HasPrefix(line, "a ") {
		t.Errorf("from the host: %q, %v", line, err)
	}
	_, err = fmt.Fprintln(kept, "still there")
	w.must(err)
	said := make([]byte, len("still there\n"))
	if _, err := io.ReadFull(kept, said); err != nil || string(said) != "still there\n" {
		t.Errorf("a connection in the VPC: %q, %v", said, err)
	}
}
