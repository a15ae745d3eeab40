// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/proxyheader"
)

// serveIdentity is what the identity service's socket is: whoever comes is told who they are, and then hears what they
// say.
func serveIdentity(t *testing.T, socket string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				header, err := proxyheader.Read(connection)
				if err != nil {
					return
				}
				_, _ = fmt.Fprintf(connection, "%s by %s in %s\n", header.Source.Addr(), header.Destination, header.VPC)
				_, _ = io.Copy(connection, connection)
			}()
		}
	}()
}

func startIdentity(t *testing.T, n *Network) (socket string, stop func()) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "identity.sock")
	config := relayConfig(t, n)
	config.IdentitySocket = socket
	return socket, runRelay(t, config)
}

// greeting is the first line that a connection hears.
func greeting(t *testing.T, connection net.Conn) (string, error) {
	t.Helper()
	if err := connection.SetReadDeadline(time.Now().Add(generous)); err != nil {
		t.Fatal(err)
	}
	var line []byte
	one := make([]byte, 1)
	for {
		if _, err := connection.Read(one); err != nil {
			return string(line), err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
}

// A machine reaches STS and IAM in the VPC, also while the service is being restarted, and the service is told which
// machine it is.
func TestMachinesReachTheIdentityService(t *testing.T) {
	n := newNetwork(t)
	machine := newMachine(t, n, "192.168.64.11")
	socket, stop := startIdentity(t, n)
	defer stop()
	connection, err := dialIn(t, machine, "192.168.64.3:443")
	if err != nil {
		t.Fatal(err)
	}
	serveIdentity(t, socket)
	if said, err := greeting(t, connection); err != nil || said != "192.168.64.11 by 192.168.64.3:443 in vpc-0123456789abcdef0" {
		t.Fatalf("%q, %v", said, err)
	}
	if _, err := io.WriteString(connection, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if heard, err := greeting(t, connection); err != nil || heard != "hello" {
		t.Errorf("%q, %v", heard, err)
	}
}

// A VPC without the service has nobody at its address.
func TestNoIdentityService(t *testing.T) {
	n := newNetwork(t)
	machine := newMachine(t, n, "192.168.64.11")
	defer startRelay(t, n, "127.0.0.1:6443", filepath.Join(t.TempDir(), "egress.sock"))()
	if _, err := dialIn(t, machine, "192.168.64.3:443"); err == nil {
		t.Error("somebody answers")
	}
}

// A machine that takes all connections it can get, by its pods too, takes none of another machine's.
func TestAMachineTakesNobodyElsesConnections(t *testing.T) {
	n := newNetwork(t)
	greedy, other := newMachine(t, n, "192.168.64.11"), newMachine(t, n, "192.168.64.12")
	socket, stop := startIdentity(t, n)
	defer stop()
	serveIdentity(t, socket)
	if err := n.SetRoute(Route{PodCIDR: netip.MustParsePrefix("10.244.1.0/24"), Machine: netip.MustParseAddr("192.168.64.11")}); err != nil {
		t.Fatal(err)
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
	for address, want := range map[string]string{
		"10.244.1.7": "192.168.64.11", "10.244.2.7": "10.244.2.7", "192.168.64.12": "192.168.64.12",
	} {
		if got := owners.of(netip.MustParseAddr(address)); got.String() != want {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
	}

	answered := 0
	for range maxIdentityPerMachine + 40 {
		connection, err := dialIn(t, greedy, "192.168.64.3:443")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := greeting(t, connection); err == nil {
			answered++
		}
	}
	if answered != maxIdentityPerMachine {
		t.Errorf("%d connections of one machine are answered, want %d", answered, maxIdentityPerMachine)
	}
	connection, err := dialIn(t, other, "192.168.64.3:443")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := greeting(t, connection); err != nil || said != "192.168.64.12 by 192.168.64.3:443 in vpc-0123456789abcdef0" {
		t.Errorf("the other machine hears %q, %v", said, err)
	}
}

// A pod that takes all connections it can get does not keep its machine from its own: the kubelet's credentials come by
// them.
func TestAPodTakesNotAllOfItsMachine(t *testing.T) {
	n := newNetwork(t)
	machine := newMachine(t, n, "192.168.64.11")
	socket, stop := startIdentity(t, n)
	defer stop()
	serveIdentity(t, socket)
	if err := n.SetRoute(Route{PodCIDR: netip.MustParsePrefix("10.244.1.0/24"), Machine: netip.MustParseAddr("192.168.64.11")}); err != nil {
		t.Fatal(err)
	}
	if err := withHandle(machine, func(h *netlink.Handle) error {
		lo, err := h.LinkByName("lo")
		if err != nil {
			return err
		}
		return h.AddrReplace(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("10.244.1.5/32"))})
	}); err != nil {
		t.Fatal(err)
	}
	answered := 0
	for range maxIdentityPerMachine + 8 {
		var connection net.Conn
		if err := host.InNetwork(machine, func() (err error) {
			dialer := net.Dialer{Timeout: 10 * time.Second, FallbackDelay: -1, LocalAddr: &net.TCPAddr{IP: net.IPv4(10, 244, 1, 5)}}
			connection, err = dialer.DialContext(t.Context(), "tcp4", "192.168.64.3:443")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, err := greeting(t, connection); err == nil {
			answered++
		}
	}
	if answered == 0 {
		t.Error("the pod is not answered at all")
	}
	connection, err := dialIn(t, machine, "192.168.64.3:443")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := greeting(t, connection); err != nil || said != "192.168.64.11 by 192.168.64.3:443 in vpc-0123456789abcdef0" {
		t.Errorf("its machine hears %q, %v", said, err)
	}
}

// TestIssuersByTheirName has machines reach the socket of the name that they ask for by TLS, and all others the
// identity service.
func TestIssuersByTheirName(t *testing.T) {
	n := newNetwork(t)
	machine := newMachine(t, n, "192.168.64.11")
	config := relayConfig(t, n)
	config.IdentitySocket, config.IssuerSocket = filepath.Join(t.TempDir(), "identity.sock"), filepath.Join(t.TempDir(), "issuers.sock")
	config.IssuerName = "oidc.example.com"
	defer runRelay(t, config)()
	for socket, names := range map[string][]string{
		config.IssuerSocket:   {"oidc.example.com", "OIDC.example.com"},
		config.IdentitySocket: {"sts.us-east-1.amazonaws.com", "x.oidc.example.com", ""},
	} {
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			connection, err := dialIn(t, machine, "192.168.64.3:443")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_ = tls.Client(connection, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
			}()
			brought, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if header, err := proxyheader.Read(brought); err != nil || header.Source.Addr().String() != "192.168.64.11" {
				t.Errorf("%q: %+v, %v", name, header, err)
			}
			_, _ = brought.Close(), connection.Close()
		}
		_ = listener.Close()
	}
}
