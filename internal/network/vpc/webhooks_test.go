// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"muster.dev/muster/internal/network/securitygroup"
)

// byURL asks the webhook socket for a connection, as an API server does, and returns what it would show: the rest of
// the status line, too.
func byURL(t *testing.T, socket, target string) (connection net.Conn, status string) {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if _, err := fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(iotest.OneByteReader(connection)), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return connection, response.Status
}

// nameList is a name server of a few names.
type nameList map[string][]netip.Addr

func (nameList) Serve(ctx context.Context, packets net.PacketConn, listener net.Listener, _ func(netip.Addr) netip.Addr) error {
	<-ctx.Done()
	_, _ = packets.Close(), listener.Close()
	return nil
}

func (d nameList) Lookup(_ context.Context, client netip.Addr, name string) ([]netip.Addr, error) {
	if client.String() != "192.168.64.4" {
		return nil, fmt.Errorf("%s asks, not the API server's address in the VPC", client)
	}
	return d[name], nil
}

// says listens in a namespace and tells whoever connects its address.
func says(t *testing.T, namespace *os.File, address string) {
	t.Helper()
	listener := listenIn(t, namespace, address)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintln(connection, connection.RemoteAddr().(*net.TCPAddr).IP)
			_ = connection.Close()
		}
	}()
}

// Connections that users have an API server dial by URL leave from its address in the VPC, as far as security groups
// let them, and lead neither to the host, nor to the VPC itself, nor to API servers.
func TestWebhooksByURL(t *testing.T) {
	n := newNetwork(t)
	const closed, apiServers = "sg-11111111111111111", "sg-22222222222222222"
	groups := []securitygroup.Group{
		open(),
		group(closed, rule(securitygroup.Egress, securitygroup.AllProtocols, 0, "0.0.0.0/0"), rule(securitygroup.Ingress, "tcp", 9443, apiServers)),
		group(apiServers, rule(securitygroup.Egress, securitygroup.AllProtocols, 0, "0.0.0.0/0")),
	}
	if err := n.SetSecurity(groups, nil); err != nil {
		t.Fatal(err)
	}
	machine, careful, foreign := newMachine(t, n, firstMachine), newMachineIn(t, n, secondMachine, closed), newMachine(t, n, "192.168.64.14")
	says(t, machine, firstMachine+":9443")
	says(t, careful, secondMachine+":9443")
	says(t, careful, secondMachine+":8443")
	says(t, foreign, "192.168.64.14:9443")
	balancer := balancerOf("web", "192.168.64.20", "127.130.0.1")
	if err := n.SetBalancer(balancer); err != nil {
		t.Fatal(err)
	}
	sockets := t.TempDir()
	own := endpointOf(apiServerSaying(t, "one"), filepath.Join(sockets, "egress.sock"))
	own.WebhookSocket, own.SecurityGroups = filepath.Join(sockets, "webhooks.sock"), []string{apiServers}
	other := Endpoint{
		Cluster: "two", Addresses: []netip.Addr{netip.MustParseAddr("192.168.64.5"), netip.MustParseAddr("192.168.96.5")}, APIServer: netip.MustParseAddrPort(apiServerSaying(t, "two")),
		EgressSocket: filepath.Join(sockets, "two.sock"), PodCIDR: netip.MustParsePrefix("10.245.0.0/16"), SecurityGroups: []string{openGroup},
	}
	for _, e := range []Endpoint{own, other} {
		if err := n.SetEndpoint(e); err != nil {
			t.Fatal(err)
		}
	}
	config := relayConfig(t, n)
	config.Machines = inventory{firstMachine: clusterName, secondMachine: clusterName, "192.168.64.14": "two"}
	address := netip.MustParseAddr
	config.Names = nameList{
		"web.example.com": {address(firstMachine)}, "rebound.example.com": {address("127.0.0.1")}, "both.example.com": {address("::ffff:127.0.0.1"), address(firstMachine)},
		"plane.example.com": {address("192.168.64.3")},
	}
	defer runRelay(t, config)()
	namespace, err := n.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	says(t, namespace, "192.168.64.20:443")
	says(t, namespace, "127.0.0.1:9443") // the VPC's own loopback is not dialled either

	targets := map[string]string{
		firstMachine + ":9443":    "200",
		"web.example.com:9443":    "200",
		"both.example.com:9443":   "200",
		secondMachine + ":9443":   "200",
		"192.168.64.14:9443":      "200", // a machine of another cluster whose groups let the API server in
		"192.168.64.20:443":       "200", // a load balancer
		secondMachine + ":8443":   "502 Bad Gateway: security groups, routes or the server do not let cluster",
		"192.168.64.99:443":       "502 Bad Gateway: security groups",
		"127.0.0.1:9443":          "403 Forbidden: 127.0.0.1:9443 is a loopback address",
		"127.9.9.9:443":           "403 Forbidden: 127.9.9.9:443 is a loopback address",
		"0.0.0.0:9443":            "403 Forbidden: 0.0.0.0:9443 is a loopback address",
		"[::ffff:127.0.0.1]:9443": "403 Forbidden: 127.0.0.1:9443 is a loopback address",
		"[::1]:9443":              "403 Forbidden: [::1]:9443 is not an IPv4 address",
		"rebound.example.com:443": "403 Forbidden: 127.0.0.1:443 is a loopback address",
		"localhost:9443":          `403 Forbidden: the name server of the VPC`,
		"plane.example.com:443":   "403 Forbidden: 192.168.64.3:443 is an address of the VPC itself",
		"192.168.96.1:443":        "403 Forbidden: 192.168.96.1:443 is an address of the VPC itself",
		"169.254.169.254:80":      "403 Forbidden: 169.254.169.254:80 is an address of the VPC itself",
		"192.168.64.4:443":        "403 Forbidden: 192.168.64.4:443 is the API server of cluster " + clusterName,
		"192.168.96.5:443":        "403 Forbidden: 192.168.96.5:443 is the API server of cluster two",
		"203.0.113.7:443":         "403 Forbidden: 203.0.113.7:443 is outside the VPC",
		"169.254.1.1:443":         "403 Forbidden: 169.254.1.1:443 is outside the VPC",
		firstMachine + ":0":       "403 Forbidden: CONNECT needs a host and a port",
		firstMachine:              "403 Forbidden: CONNECT needs a host and a port",
	}
	t.Run("targets", func(t *testing.T) { // at once: what is dropped takes as long as a webhook may
		for target, want := range targets {
			t.Run(target, func(t *testing.T) {
				t.Parallel()
				connection, status := byURL(t, own.WebhookSocket, target)
				if !strings.HasPrefix(status, want) {
					t.Errorf("%q, want %q", status, want)
				}
				if want != "200" || !strings.HasPrefix(status, "200") {
					return
				}
				if said, err := greeting(t, connection); err != nil || said != "192.168.64.4" {
					t.Errorf("it is dialled from %q (%v), not from the API server's address in the VPC", said, err)
				}
			})
		}
	})

	// A load balancer is in the namespace itself: what leaves for it is asked about all the same.
	own.SecurityGroups = []string{closed}
	groups[1] = group(closed, rule(securitygroup.Egress, "tcp", 9443, "0.0.0.0/0"))
	if err := n.SetSecurity(groups, nil); err != nil {
		t.Fatal(err)
	}
	if err := n.SetEndpoint(own); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the group of the API server has it dial the port 9443 alone", func() error {
		_, balancer := byURL(t, own.WebhookSocket, "192.168.64.20:443")
		_, machine := byURL(t, own.WebhookSocket, firstMachine+":9443")
		if !strings.HasPrefix(balancer, "502") || !strings.HasPrefix(machine, "200") {
			return fmt.Errorf("the load balancer: %s, the machine: %s", balancer, machine)
		}
		return nil
	})
}

// An earlier version described no webhook socket: the door to machines opens without.
func TestEndpointWithoutWebhooks(t *testing.T) {
	n := newNetwork(t)
	newMachine(t, n, firstMachine)
	socket := filepath.Join(t.TempDir(), "egress.sock")
	defer startRelay(t, n, apiServerSaying(t, "one"), socket)()
	if _, status := connect(t, socket, firstMachine+":1"); status != http.StatusBadGateway {
		t.Errorf("CONNECT: %d", status)
	}
}

// Webhooks that do not answer leave room for kubelets.
func TestWebhooksLeaveRoom(t *testing.T) {
	d := &door{slots: make(chan struct{}, maxConnections)}
	for range maxWebhooks {
		if !d.takeWebhook() {
			t.Fatal("there is no room")
		}
	}
	if d.takeWebhook() {
		t.Error("there is no bound")
	}
	for range maxCalls - maxWebhooks {
		if !d.takeCall() {
			t.Fatal("webhooks have the room of kubelets")
		}
	}
	d.giveWebhook()
	if !d.takeWebhook() || d.webhooks.Load() != maxWebhooks || d.calls.Load() != maxCalls {
		t.Errorf("%d webhooks, %d calls", d.webhooks.Load(), d.calls.Load())
	}
}
