// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// apiServerSaying is an API server on the host's loopback: it says its name and then what it hears.
func apiServerSaying(t *testing.T, name string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
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
				_, _ = fmt.Fprintln(connection, name)
				for one := make([]byte, 1); ; {
					if _, err := connection.Read(one); err != nil {
						return
					}
					_, _ = connection.Write(one)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// eventually tries until what is wanted is so: the relay follows the file of endpoints within a moment.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(generous); time.Now().Before(deadline); {
		if err = try(); err == nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}

// asked returns who answers at an address in the VPC.
func asked(t *testing.T, machine *os.File, address string) (net.Conn, string, error) {
	t.Helper()
	connection, err := dialIn(t, machine, address)
	if err != nil {
		return nil, "", err
	}
	said, err := greeting(t, connection)
	return connection, said, err
}

// Clusters come and go while the VPC's process goes on: what is open for one is not touched by another that comes,
// changes or goes.
func TestClustersComeAndGo(t *testing.T) {
	n := newNetwork(t)
	machine := newMachine(t, n, firstMachine)
	sockets := t.TempDir()
	first := endpointOf(apiServerSaying(t, "one"), filepath.Join(sockets, "one.sock"))
	stop := startRelay(t, n, first.APIServer.String(), first.EgressSocket)
	defer func() { stop() }()
	open, said, err := asked(t, machine, "192.168.64.4:443")
	if err != nil || said != "one" {
		t.Fatalf("%q, %v", said, err)
	}

	second := Endpoint{
		Cluster: "two", Addresses: []netip.Addr{netip.MustParseAddr("192.168.64.5"), netip.MustParseAddr("192.168.96.5")},
		APIServer: netip.MustParseAddrPort(apiServerSaying(t, "two")), EgressSocket: filepath.Join(sockets, "two.sock"), PodCIDR: netip.MustParsePrefix("10.245.0.0/16"), SecurityGroups: []string{openGroup},
	}
	if err := n.SetEndpoint(second); err != nil {
		t.Fatal(err)
	}
	is := func(address, want string) {
		t.Helper()
		eventually(t, address, func() error {
			_, said, err := asked(t, machine, address)
			if want == "" && err == nil {
				return fmt.Errorf("%q answers still", said)
			}
			if want != "" && said != want {
				return fmt.Errorf("%q answers, %w", said, errors.Join(err, errors.New("want "+want)))
			}
			return nil
		})
	}
	is("192.168.64.5:443", "two")
	is("192.168.96.5:443", "two")
	is("192.168.96.4:443", "one")

	// A file that cannot be read changes nothing.
	raw, err := os.ReadFile(endpointsFile.path(n))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(endpointsFile.path(n), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-time.After(300 * time.Millisecond) // longer than a change takes to be seen
	is("192.168.64.5:443", "two")
	if err := os.WriteFile(endpointsFile.path(n), raw, 0o600); err != nil {
		t.Fatal(err)
	}

	// Its API server moves, and then it goes.
	second.APIServer = netip.MustParseAddrPort(apiServerSaying(t, "two again"))
	if err := n.SetEndpoint(second); err != nil {
		t.Fatal(err)
	}
	is("192.168.64.5:443", "two again")
	if err := n.RemoveEndpoint("two"); err != nil {
		t.Fatal(err)
	}
	is("192.168.64.5:443", "")
	eventually(t, "the egress socket goes", func() error {
		if _, err := os.Lstat(second.EgressSocket); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	// Its address can be a machine's now.
	if err := n.Attach(newNamespace(t), interfaceOf("192.168.64.5")); err != nil {
		t.Error(err)
	}

	// The first one's connection has been there all the while.
	if _, err := open.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	if heard, err := greeting(t, open); err != nil || heard != "x" {
		t.Errorf("the connection of the other cluster: %q, %v", heard, err)
	}
	stop()
	stop = startRelay(t, n, first.APIServer.String(), first.EgressSocket)
	is("192.168.64.4:443", "one")
}

// An API server reaches the machines and the pods of its own cluster, and nothing of another's by any port; of a host
// that nobody launched, the kubelet.
func TestADoorLeadsToItsOwnCluster(t *testing.T) {
	n := newNetwork(t)
	const theirs, host = "192.168.64.12", "192.168.64.13"
	for _, address := range []string{firstMachine, theirs, host} {
		machine := newMachine(t, n, address)
		for _, port := range []string{"10250", "8443"} {
			echo(t, listenIn(t, machine, address+":"+port))
		}
		if pod := map[string]string{firstMachine: "10.244.1.7/32", theirs: "10.245.1.7/32"}[address]; pod != "" {
			err := withHandle(machine, func(h *netlink.Handle) error {
				lo, err := h.LinkByName("lo")
				if err != nil {
					return err
				}
				return h.AddrReplace(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(pod))})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for pods, machine := range map[string]string{"10.244.1.0/24": firstMachine, "10.245.1.0/24": theirs, "10.244.9.0/24": theirs} {
		if err := n.SetRoute(Route{PodCIDR: netip.MustParsePrefix(pods), Machine: netip.MustParseAddr(machine)}); err != nil {
			t.Fatal(err)
		}
	}
	sockets := t.TempDir()
	one, two := filepath.Join(sockets, "one.sock"), filepath.Join(sockets, "two.sock")
	if err := errors.Join(n.SetEndpoint(endpointOf("127.0.0.1:1", one)), n.SetEndpoint(Endpoint{
		Cluster: "two", Addresses: []netip.Addr{netip.MustParseAddr("192.168.64.5")}, APIServer: netip.MustParseAddrPort("127.0.0.1:2"),
		EgressSocket: two, PodCIDR: netip.MustParsePrefix("10.245.0.0/16"), SecurityGroups: []string{openGroup},
	})); err != nil {
		t.Fatal(err)
	}
	config := relayConfig(t, n)
	config.Machines = inventory{firstMachine: clusterName, theirs: "two", "192.168.64.14": "two"}
	defer runRelay(t, config)()
	for _, test := range []struct {
		socket, target string
		want           int
	}{
		{one, firstMachine + ":10250", http.StatusOK},
		{one, firstMachine + ":8443", http.StatusOK},
		{one, theirs + ":10250", http.StatusForbidden},
		{one, theirs + ":8443", http.StatusForbidden},
		{one, host + ":10250", http.StatusOK},
		{one, host + ":8443", http.StatusForbidden},
		{two, theirs + ":8443", http.StatusOK},
		{two, firstMachine + ":10250", http.StatusForbidden},
		{one, "10.244.1.7:443", http.StatusBadGateway}, // nobody listens, but it may be tried
		{one, "10.244.9.7:443", http.StatusForbidden},  // of its range, on another cluster's machine
		{one, "10.245.1.7:443", http.StatusForbidden},
		{two, "10.245.1.7:443", http.StatusBadGateway},
		{one, "192.168.64.5:10250", http.StatusForbidden}, // the other's endpoint
		{one, "192.168.64.5:443", http.StatusForbidden},
		{one, "192.168.96.1:10250", http.StatusForbidden},
		{one, "169.254.169.253:53", http.StatusForbidden},
	} {
		if _, got := connect(t, test.socket, test.target); got != test.want {
			t.Errorf("CONNECT %s by %s: %d, want %d", test.target, filepath.Base(test.socket), got, test.want)
		}
	}
}

// Two VPCs with the same range do not meet: the same address is another machine in each.
func TestTwoVPCsWithTheSameRange(t *testing.T) {
	a, b := newNetwork(t), newNetwork(t)
	for name, n := range map[string]*Network{"a": a, "b": b} {
		newMachine(t, n, firstMachine)
		asker := newMachine(t, n, secondMachine)
		server := newMachine(t, n, "192.168.64.13")
		listener := listenIn(t, server, "192.168.64.13:80")
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = fmt.Fprintln(connection, name)
				_ = connection.Close()
			}
		}()
		if _, said, err := asked(t, asker, "192.168.64.13:80"); err != nil || said != name {
			t.Errorf("in %s %q answers, %v", name, said, err)
		}
	}
	only := newMachine(t, a, "192.168.64.14")
	echo(t, listenIn(t, only, "192.168.64.14:80"))
	if _, err := dialIn(t, newMachine(t, b, "192.168.64.15"), "192.168.64.14:80"); err == nil {
		t.Error("a machine of the one VPC reaches one of the other")
	}
}

// Machines of two subnets reach each other by the routers of their own.
func TestSubnets(t *testing.T) {
	n := newNetwork(t)
	here, there := newMachine(t, n, firstMachine), newMachine(t, n, "192.168.96.11")
	echo(t, listenIn(t, there, "192.168.96.11:80"))
	connection, err := dialIn(t, here, "192.168.96.11:80")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := tell(connection, 3); err != nil || answer != "heard 3 bytes" {
		t.Errorf("%q, %v", answer, err)
	}
	for machine, router := range map[*os.File]string{here: "192.168.64.1", there: "192.168.96.1"} {
		if got := permanent(t, machine, netip.MustParseAddr(router)); got == nil {
			t.Errorf("the machine does not know its router %s", router)
		}
	}
}

func TestEndpointsAreRefused(t *testing.T) {
	n, err := New(Config{Dir: filepath.Join(t.TempDir(), "vpc"), CIDR: cidr, Subnets: subnets})
	if err != nil {
		t.Fatal(err)
	}
	good := endpointOf("127.0.0.1:6443", "/run/one.sock")
	if err := n.SetEndpoint(good); err != nil {
		t.Fatal(err)
	}
	addresses := func(all ...string) (parsed []netip.Addr) {
		for _, a := range all {
			parsed = append(parsed, netip.MustParseAddr(a))
		}
		return parsed
	}
	for what, change := range map[string]func(e *Endpoint){
		"cluster has no name":             func(e *Endpoint) { e.Cluster = "" },
		"has no address":                  func(e *Endpoint) { e.Addresses = nil },
		"not in a subnet":                 func(e *Endpoint) { e.Addresses = addresses("192.168.112.4") },
		"192.168.64.1 is reserved":        func(e *Endpoint) { e.Addresses = addresses("192.168.64.1") },
		"192.168.64.3 is reserved":        func(e *Endpoint) { e.Addresses = addresses("192.168.64.3") },
		"192.168.96.2 is reserved":        func(e *Endpoint) { e.Addresses = addresses("192.168.96.2") },
		"the last one":                    func(e *Endpoint) { e.Addresses = addresses("192.168.79.255") },
		"there twice":                     func(e *Endpoint) { e.Addresses = addresses("192.168.64.9", "192.168.64.9") },
		"not on the host's loopback":      func(e *Endpoint) { e.APIServer = netip.MustParseAddrPort("10.0.0.1:443") },
		"not an absolute path":            func(e *Endpoint) { e.EgressSocket = "x" },
		"not a range of IPv4 addresses":   func(e *Endpoint) { e.PodCIDR = netip.Prefix{} },
		"overlaps the VPC's range":        func(e *Endpoint) { e.PodCIDR = netip.MustParsePrefix("192.168.0.0/16") },
		"has an address":                  func(e *Endpoint) { e.Addresses = good.Addresses[1:] },
		"has the egress socket":           func(e *Endpoint) { e.EgressSocket = good.EgressSocket },
		"is not an absolute path of its":  func(e *Endpoint) { e.AccountAPIsSocket = e.EgressSocket },
		"has the API server's address":    func(e *Endpoint) { e.APIServer = good.APIServer },
		`invalid subnet id "subnet-1"`:    func(e *Endpoint) { e.PodSubnets = []string{"subnet-0123456789abcdef0", "subnet-1"} },
		"has a part of its podCIDR 10.24": func(e *Endpoint) { e.PodCIDR = netip.MustParsePrefix("10.244.128.0/17") },
	} {
		bad := Endpoint{
			Cluster: "two", Addresses: addresses("192.168.64.5"), APIServer: netip.MustParseAddrPort("127.0.0.1:6444"), EgressSocket: "/run/two.sock",
			PodCIDR: netip.MustParsePrefix("10.245.0.0/16"), SecurityGroups: []string{openGroup},
		}
		change(&bad)
		if err := n.SetEndpoint(bad); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want an error with %q", err, what)
		}
	}
	if all, err := n.Endpoints(); err != nil || len(all) != 1 || !all[0].equal(good) {
		t.Errorf("endpoints: %+v, %v", all, err)
	}
	if taken, err := n.Taken(); err != nil || len(taken) != 2 {
		t.Errorf("taken: %v, %v", taken, err)
	}
	for range 2 {
		if err := n.RemoveEndpoint(clusterName); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := n.Endpoints(); err != nil || len(all) != 0 {
		t.Errorf("endpoints: %+v, %v", all, err)
	}
}

func TestDescriptions(t *testing.T) {
	root := t.TempDir()
	prefix := netip.MustParsePrefix
	const other = "vpc-0123456789abcdef1"
	good := Description{ID: vpcID, CIDR: prefix("172.31.0.0/16"), Default: true, Subnets: []Subnet{
		{ID: "subnet-0123456789abcdef0", Zone: "us-east-1a", CIDR: prefix("172.31.0.0/20")}, {ID: "subnet-0123456789abcdef1", Zone: "us-east-1b", CIDR: prefix("172.31.16.0/20")},
	}}
	if _, err := OpenDefault(root); err == nil {
		t.Error("there is a default VPC in an empty directory")
	}
	if err := errors.Join(Describe(root, good), Describe(root, Description{ID: other, CIDR: prefix("172.31.0.0/16")})); err != nil {
		t.Fatal(err)
	}
	if all, err := List(root); err != nil || len(all) != 2 || all[0].ID != vpcID || len(all[0].Subnets) != 2 || all[1].ID != other {
		t.Errorf("got %+v, %v", all, err)
	}
	n, err := OpenDefault(root)
	if err != nil || n.ID() != vpcID || n.CIDR() != good.CIDR {
		t.Fatalf("got %+v, %v", n, err)
	}
	if subnet, ok := n.SubnetOf(netip.MustParseAddr("172.31.17.1")); !ok || subnet != prefix("172.31.16.0/20") {
		t.Errorf("got %v", subnet)
	}
	if _, ok := n.SubnetOf(netip.MustParseAddr("172.31.32.1")); ok {
		t.Error("an address is in a subnet that there is not")
	}
	if _, err := Read(root, "vpc-0123456789abcdef2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	for what, change := range map[string]func(d *Description){
		"invalid VPC id":             func(d *Description) { d.ID = "../x" },
		"not a range":                func(d *Description) { d.CIDR = prefix("172.31.0.1/16") },
		"too small":                  func(d *Description) { d.Subnets[0].CIDR = prefix("172.31.0.0/29") },
		"not within the VPC's range": func(d *Description) { d.Subnets[0].CIDR = prefix("172.30.0.0/20") },
		"overlaps":                   func(d *Description) { d.Subnets[0].CIDR = prefix("172.31.16.0/24") },
		"is there twice":             func(d *Description) { d.Subnets[0].ID = d.Subnets[1].ID },
		"invalid subnet id":          func(d *Description) { d.Subnets[0].ID = "subnet-1" },
	} {
		bad := good
		bad.Subnets = append([]Subnet(nil), good.Subnets...)
		change(&bad)
		if err := Describe(root, bad); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want an error with %q", err, what)
		}
	}
	if err := os.WriteFile(filepath.Join(root, other, descriptionFile), []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := List(root); err == nil || !strings.Contains(err.Error(), "version is 2, want 1") {
		t.Errorf("got %v", err)
	}
}
