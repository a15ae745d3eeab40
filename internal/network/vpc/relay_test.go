// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/socketdir"
)

func endpointOf(apiServer, socket string) Endpoint {
	return Endpoint{
		Cluster: clusterName, Addresses: []netip.Addr{netip.MustParseAddr("192.168.64.4"), netip.MustParseAddr("192.168.96.4")},
		APIServer: netip.MustParseAddrPort(apiServer), EgressSocket: socket, PodCIDR: podCIDR, SecurityGroups: []string{openGroup},
	}
}

// startRelay runs a relay with an endpoint of one cluster until the function that it returns is called.
func startRelay(t *testing.T, n *Network, apiServer, socket string) (stop func()) {
	t.Helper()
	if err := n.SetEndpoint(endpointOf(apiServer, socket)); err != nil {
		t.Fatal(err)
	}
	return runRelay(t, relayConfig(t, n))
}

func relayConfig(t *testing.T, n *Network) RelayConfig {
	t.Helper()
	return RelayConfig{Network: n, Machines: ours, Socket: filepath.Join(t.TempDir(), "vpc.sock"), Log: slog.New(slog.DiscardHandler)}
}

func runRelay(t *testing.T, config RelayConfig) (stop func()) {
	t.Helper()
	relay, err := NewRelay(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	deadline := time.Now().Add(generous)
	for {
		response, err := egressClient(config.Socket).Get("http://vpc/readyz")
		if err == nil {
			_ = response.Body.Close()
			break
		}
		select {
		case err := <-done:
			t.Fatalf("relay ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("relay does not get ready: %v", err)
		}
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("relay: %v", err)
		}
	}
}

func egressClient(socket string) *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

// connect asks the egress socket for a connection, as an API server does.
func connect(t *testing.T, socket, target string) (net.Conn, int) {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if _, err := fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(connection, 16), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return connection, response.StatusCode
}

func TestRelay(t *testing.T) {
	n := newNetwork(t)
	machine := newMachine(t, n, "192.168.64.11")
	apiServer, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer apiServer.Close()
	echo(t, apiServer)
	echo(t, listenIn(t, machine, "192.168.64.11:10250"))
	socket := filepath.Join(t.TempDir(), "egress.sock")

	// The socket that a killed relay has left behind is not an obstacle.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	stop := startRelay(t, n, apiServer.Addr().String(), socket)

	if target, err := os.Readlink(socket); err != nil || target != socketdir.Link(socket) {
		t.Errorf("egress socket is at %q, %v: it cannot be shown to the API server", target, err)
	}
	port := apiServer.Addr().(*net.TCPAddr).Port
	if _, err := dialIn(t, machine, fmt.Sprintf("192.168.64.4:%d", port)); err == nil {
		t.Error("the port that the API server has on the host is open in the VPC")
	}
	for _, endpoint := range []string{"192.168.64.4:443", "192.168.96.4:443"} {
		connection, err := dialIn(t, machine, endpoint)
		if err != nil {
			t.Fatalf("the API server's endpoint %s: %v", endpoint, err)
		}
		if answer, err := tell(connection, 1<<20); err != nil || answer != "heard 1048576 bytes" {
			t.Errorf("API server by %s: %q, %v", endpoint, answer, err)
		}
	}
	connection, status := connect(t, socket, "192.168.64.11:10250")
	if status != http.StatusOK {
		t.Fatalf("CONNECT to a machine: %d", status)
	}
	if answer, err := tell(connection, 1<<20); err != nil || answer != "heard 1048576 bytes" {
		t.Errorf("machine by egress: %q, %v", answer, err)
	}
	for target, want := range map[string]int{
		"192.168.64.11:1":    http.StatusBadGateway, // nobody listens
		"192.168.64.4:443":   http.StatusForbidden,  // the API server itself
		"192.168.64.4:10250": http.StatusForbidden,
		"192.168.64.2:53":    http.StatusForbidden, // names
		"192.168.64.3:443":   http.StatusForbidden, // STS and IAM
		"192.168.64.1:22":    http.StatusForbidden,
		"127.0.0.1:22":       http.StatusForbidden,
		"169.254.169.254:80": http.StatusForbidden,
		"10.100.0.1:443":     http.StatusForbidden,
		"localhost:22":       http.StatusForbidden,
		"192.168.64.11:0":    http.StatusForbidden,
		"[::1]:22":           http.StatusForbidden,
	} {
		if _, got := connect(t, socket, target); got != want {
			t.Errorf("CONNECT %s: %d, want %d", target, got, want)
		}
	}

	stop()
	startRelay(t, n, apiServer.Addr().String(), socket)()
}

// A connection made while the API server is down is served once it is up again.
func TestRelayWaitsForAPIServer(t *testing.T) {
	n := newNetwork(t)
	machine := newMachine(t, n, "192.168.64.11")
	apiServer, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := apiServer.Addr().String()
	_ = apiServer.Close()
	defer startRelay(t, n, address, filepath.Join(t.TempDir(), "egress.sock"))()
	connection, err := dialIn(t, machine, "192.168.64.4:443")
	if err != nil {
		t.Fatal(err)
	}
	again, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	echo(t, again)
	if answer, err := tell(connection, 5); err != nil || answer != "heard 5 bytes" {
		t.Errorf("%q, %v", answer, err)
	}
}
