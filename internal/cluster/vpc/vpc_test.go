// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/cluster/securitygroup"
	"muster.dev/muster/internal/platform/host"
)

var (
	cidr    = netip.MustParsePrefix("192.168.64.0/18")
	podCIDR = netip.MustParsePrefix("10.244.0.0/16")
	subnets = []netip.Prefix{netip.MustParsePrefix("192.168.64.0/20"), netip.MustParsePrefix("192.168.96.0/20")}
)

const vpcID = "vpc-0123456789abcdef0"

func newNetwork(t *testing.T) *Network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces, which needs root")
	}
	n, err := New(Config{Dir: filepath.Join(t.TempDir(), "vpc"), ID: vpcID, CIDR: cidr, Subnets: subnets})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Delete(); err != nil {
			t.Error(err)
		}
	})
	if err := n.Ensure(); err != nil {
		t.Fatal(err)
	}
	if err := n.SetSecurity([]securitygroup.Group{open()}, nil); err != nil {
		t.Fatal(err)
	}
	return n
}

// openGroup lets everything through, both ways.
const openGroup = "sg-0123456789abcdef0"

func open() securitygroup.Group {
	return group(openGroup, rule(securitygroup.Ingress, securitygroup.AllProtocols, 0, "0.0.0.0/0"), rule(securitygroup.Egress, securitygroup.AllProtocols, 0, "0.0.0.0/0"))
}

func group(id string, rules ...securitygroup.Rule) securitygroup.Group {
	return securitygroup.Group{ID: id, Rules: rules}
}

// rule is of one port, by a range or a group.
func rule(direction securitygroup.Direction, protocol string, port int32, peer string) securitygroup.Rule {
	r := securitygroup.Rule{Direction: direction, Protocol: protocol, FromPort: port, ToPort: port}
	if cidr, err := netip.ParsePrefix(peer); err == nil {
		r.CIDR = cidr
	} else {
		r.Group = peer
	}
	return r
}

// interfaceOf is that of the one machine that an address has in a test.
func interfaceOf(address string, groups ...string) Interface {
	return Interface{Machine: "machine " + address, Address: netip.MustParseAddr(address), SecurityGroups: groups}
}

// newMachine is a network namespace attached to a network; nothing is kept from it.
func newMachine(t *testing.T, n *Network, address string) *os.File {
	t.Helper()
	return newMachineIn(t, n, address, openGroup)
}

// newMachineIn is one in some security groups.
func newMachineIn(t *testing.T, n *Network, address string, groups ...string) *os.File {
	t.Helper()
	file := newNamespace(t)
	ip := netip.MustParseAddr(address)
	if err := n.Attach(file, interfaceOf(address, groups...)); err != nil {
		t.Fatal(err)
	}
	namespace, err := n.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	waitUp(t, namespace, linkName(ip))
	waitUp(t, file, machineLink)
	return file
}

// waitUp waits until a link carries packets: the kernel drops those that are sent within the second after both ends were set up, as it has
// not heard of it.
func waitUp(t *testing.T, namespace *os.File, name string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		var state netlink.LinkOperState
		if err := withHandle(namespace, func(h *netlink.Handle) error {
			link, err := h.LinkByName(name)
			if err == nil {
				state = link.Attrs().OperState
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if state == netlink.OperUp {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("the link %s does not come up", name)
}

func newNamespace(t *testing.T) *os.File {
	t.Helper()
	holder := exec.Command("sleep", "600")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(holder.Process.Pid), "ns/net"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func listenIn(t *testing.T, namespace *os.File, address string) net.Listener {
	t.Helper()
	var listener net.Listener
	err := host.InNetwork(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp4", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func dialIn(t *testing.T, namespace *os.File, address string) (net.Conn, error) {
	t.Helper()
	var connection net.Conn
	err := host.InNetwork(namespace, func() (err error) {
		connection, err = (&net.Dialer{Timeout: 10 * time.Second, FallbackDelay: -1}).DialContext(t.Context(), "tcp4", address)
		return err
	})
	if err == nil {
		t.Cleanup(func() { _ = connection.Close() })
	}
	return connection, err
}

// echo answers each connection with what it was sent, after the sender has ended its direction.
func echo(t *testing.T, listener net.Listener) {
	t.Helper()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				heard, err := io.ReadAll(connection)
				if err == nil {
					_, _ = fmt.Fprintf(connection, "heard %d bytes", len(heard))
				}
			}()
		}
	}()
}

// tell sends something, ends that direction, and returns the answer.
func tell(connection net.Conn, bytes int) (string, error) {
	if err := connection.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(connection, strings.Repeat("x", bytes)); err != nil {
		return "", err
	}
	end, ok := connection.(halfCloser)
	if !ok {
		return "", fmt.Errorf("%T cannot end one direction", connection)
	}
	if err := end.CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(connection)
	return string(answer), err
}

func TestNetworkOutlivesEverybodyAndGoes(t *testing.T) {
	n := newNetwork(t)
	first, err := os.Stat(n.mount())
	if err != nil {
		t.Fatal(err)
	}
	again, err := New(Config{Dir: n.dir, CIDR: cidr, Subnets: subnets})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Ensure(); err != nil {
		t.Fatal(err)
	}
	second, err := os.Stat(n.mount())
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(first, second) {
		t.Error("the second Ensure made another namespace")
	}
	for range 2 {
		if err := n.Delete(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(n.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), n.dir) {
		t.Errorf("a mount is left: %v", err)
	}
	// As after a reboot: the file is there, the mount is not.
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.mount(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Open(); err == nil {
		t.Error("an empty file passed for a namespace")
	}
	if err := n.Ensure(); err != nil {
		t.Error(err)
	}
}

func TestMachinesReachEachOther(t *testing.T) {
	n := newNetwork(t)
	first, second := newMachine(t, n, "192.168.64.11"), newMachine(t, n, "192.168.64.12")
	echo(t, listenIn(t, first, "192.168.64.11:8080"))
	connection, err := dialIn(t, second, "192.168.64.11:8080")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := tell(connection, 3); err != nil || answer != "heard 3 bytes" {
		t.Errorf("%q, %v", answer, err)
	}

	if links, err := n.Attached(); err != nil || len(links) != 2 {
		t.Errorf("links: %v, %v", links, err)
	}
	for range 2 {
		if err := n.Detach(netip.MustParseAddr("192.168.64.12")); err != nil {
			t.Fatal(err)
		}
	}
	if links, err := n.Attached(); err != nil || !cmp.Equal(links, []string{"vm-c0a8400b"}) {
		t.Errorf("links after Detach: %v, %v", links, err)
	}
	if err := n.Attach(second, interfaceOf("10.0.0.1")); err == nil {
		t.Error("an address outside the VPC was assigned")
	}
}

// Pods on one machine reach those on another by the routes, and only by them.
func TestRoutes(t *testing.T) {
	n := newNetwork(t)
	first, second := newMachine(t, n, "192.168.64.11"), newMachine(t, n, "192.168.64.12")
	pods := netip.MustParsePrefix("10.244.1.0/24")
	err := withHandle(first, func(h *netlink.Handle) error { // a pod's address on the first machine
		lo, err := h.LinkByName("lo")
		if err != nil {
			return err
		}
		return h.AddrReplace(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("10.244.1.5/32"))})
	})
	if err != nil {
		t.Fatal(err)
	}
	echo(t, listenIn(t, first, "10.244.1.5:80"))
	if _, err := dialIn(t, second, "10.244.1.5:80"); err == nil {
		t.Fatal("a pod was reached without a route")
	}
	for _, machine := range []string{"192.168.64.12", "192.168.64.11", "192.168.64.11"} {
		if err := n.SetRoute(Route{PodCIDR: pods, Machine: netip.MustParseAddr(machine)}); err != nil {
			t.Fatal(err)
		}
	}
	routes, err := n.Routes()
	if err != nil || len(routes) != 1 || routes[0] != (Route{PodCIDR: pods, Machine: netip.MustParseAddr("192.168.64.11")}) {
		t.Errorf("routes: %v, %v", routes, err)
	}
	connection, err := dialIn(t, second, "10.244.1.5:80")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := tell(connection, 1); err != nil || answer != "heard 1 bytes" {
		t.Errorf("%q, %v", answer, err)
	}
	for range 2 {
		if err := n.DeleteRoute(pods); err != nil {
			t.Fatal(err)
		}
	}
	if routes, err := n.Routes(); err != nil || len(routes) != 0 {
		t.Errorf("routes after DeleteRoute: %v, %v", routes, err)
	}
}

// clusterName is of the cluster that machines of tests belong to.
const clusterName = "one"

// inventory says which machines are whose.
type inventory map[string]string

func (i inventory) Cluster(address netip.Addr) (name string, known bool, err error) {
	name, known = i[address.String()]
	return name, known, nil
}

// ours are the machines that tests make.
var ours = inventory{"192.168.64.11": clusterName, "192.168.64.12": clusterName, "192.168.64.13": clusterName}

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
	deadline := time.Now().Add(10 * time.Second)
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

	// What a relay that was killed has left behind is no obstacle.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	stop := startRelay(t, n, apiServer.Addr().String(), socket)

	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("egress socket: %v, %v; want mode 0600", info.Mode(), err)
	}
	port := apiServer.Addr().(*net.TCPAddr).Port
	for _, endpoint := range []string{"192.168.64.4:443", "192.168.96.4:443", fmt.Sprintf("192.168.64.4:%d", port), fmt.Sprintf("192.168.96.4:%d", port)} {
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

	second, err := NewRelay(relayConfig(t, n))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another relay") {
		t.Errorf("a second relay: %v", err)
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

func TestShares(t *testing.T) {
	s := newShares(2)
	a, b := netip.MustParseAddr("192.168.64.11"), netip.MustParseAddr("192.168.64.12")
	got := []bool{s.take(a, true), s.take(a, true), s.take(a, true), s.take(b, true)}
	s.give(a)
	got = append(got, s.take(a, true))
	if want := []bool{true, true, false, true, true}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.give(b)
	if _, ok := s.taken[b]; ok {
		t.Error("a peer without connections is remembered")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, config := range []Config{
		{Dir: "relative", CIDR: cidr},
		{Dir: "/x"},
		{Dir: "/x", CIDR: netip.MustParsePrefix("192.168.64.1/18")},
		{Dir: "/x", CIDR: netip.MustParsePrefix("fd00::/64")},
		{Dir: "/x", CIDR: netip.MustParsePrefix("10.0.0.0/29")},
		{Dir: "/x", CIDR: netip.MustParsePrefix("127.0.0.0/16")},
		{Dir: "/x", CIDR: cidr, ID: "vpc-1"},
		{Dir: "/x", CIDR: cidr, ID: "../vpc-0123456789abcdef0"},
		{Dir: "/x", CIDR: cidr, Subnets: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/18")}},
		{Dir: "/x", CIDR: cidr, Subnets: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}},
		{Dir: "/x", CIDR: cidr, Subnets: []netip.Prefix{subnets[0], netip.MustParsePrefix("192.168.72.0/24")}},
	} {
		if _, err := New(config); err == nil {
			t.Errorf("New(%+v) was accepted", config)
		}
	}
	n, err := New(Config{Dir: "/x", CIDR: cidr})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	for _, config := range []RelayConfig{
		{Machines: ours, Socket: "/x", Log: log},
		{Network: n, Socket: "/x", Log: log},
		{Network: n, Machines: ours, Log: log},
		{Network: n, Machines: ours, Socket: "/x"},
		{Network: n, Machines: ours, Socket: "/x", Log: log, IdentitySocket: "/y"}, // which would not know which VPC it is
	} {
		if _, err := NewRelay(config); err == nil {
			t.Errorf("NewRelay(%+v) was accepted", config)
		}
	}
}
