// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/internal/network/clusternetwork"
)

// The API server of a cluster, and nobody else, reaches the account's APIs in that cluster, at its own addresses in the
// VPC. Where they are may change while the door is open.
func TestAccountAPIs(t *testing.T) {
	if accountAPIsPort != clusternetwork.AccountAPIsPort {
		t.Error("the door does not lead to the port that objects name")
	}
	n := newNetwork(t)
	machine := newMachine(t, n, firstMachine)
	sockets := t.TempDir()
	at := func(name string) string { return filepath.Join(sockets, name+".sock") }
	one := endpointOf("127.0.0.1:1", at("one"))
	two := Endpoint{
		Cluster: "two", Addresses: []netip.Addr{netip.MustParseAddr("192.168.64.5")}, APIServer: netip.MustParseAddrPort("127.0.0.1:2"),
		EgressSocket: at("two"), PodCIDR: netip.MustParsePrefix("10.245.0.0/16"), SecurityGroups: []string{openGroup}, AccountAPIsSocket: at("apis"),
	}
	if err := errors.Join(n.SetEndpoint(one), n.SetEndpoint(two)); err != nil {
		t.Fatal(err)
	}
	defer runRelay(t, relayConfig(t, n))()
	echo(t, unixListener(t, at("apis")))
	for target, want := range map[string]int{
		"192.168.64.5:10260": http.StatusOK,
		"192.168.64.4:10260": http.StatusForbidden, // the other cluster has the address
		"192.168.64.5:10261": http.StatusForbidden,
		"192.168.64.5:443":   http.StatusForbidden,
	} {
		if _, got := connect(t, two.EgressSocket, target); got != want {
			t.Errorf("CONNECT %s: %d, want %d", target, got, want)
		}
	}
	if _, got := connect(t, one.EgressSocket, "192.168.64.4:10260"); got != http.StatusForbidden {
		t.Errorf("of a cluster without: %d", got)
	}
	one.AccountAPIsSocket = at("later")
	if err := n.SetEndpoint(one); err != nil {
		t.Fatal(err)
	}
	if _, got := connect(t, one.EgressSocket, "192.168.64.4:10260"); got != http.StatusBadGateway {
		t.Errorf("while nobody serves them: %d", got)
	}
	echo(t, unixListener(t, at("later")))
	for _, address := range one.Addresses {
		if _, got := connect(t, one.EgressSocket, address.String()+":10260"); got != http.StatusOK {
			t.Errorf("by %s: %d", address, got)
		}
	}
	if _, err := dialIn(t, machine, "192.168.64.5:10260"); err == nil {
		t.Error("a machine of the VPC connects to the account's APIs")
	}
}

func unixListener(t *testing.T, path string) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(); _ = os.Remove(path) })
	return listener
}
