// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root: a VPC, a host that the way out has its sockets in, and a
// server far away.

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	testVPC      = "vpc-0123456789abcdef0"
	openGroup    = "sg-0123456789abcdef0"
	closedGroup  = "sg-0123456789abcdef1"
	mark         = "MUSTER_EGRESS_TEST"
	hostAddress  = "198.18.0.1" // as a host's public one is
	farAddress   = "198.18.0.2"
	farPrivate   = "10.99.0.1"
	firstMachine = "172.31.0.5"
)

var testCIDR = netip.MustParsePrefix("172.31.0.0/16")

// TestMain lets the test's program be the program itself.
func TestMain(m *testing.M) {
	if os.Getenv(mark) != "" {
		main()
		return
	}
	m.Run()
}

// world is a VPC with a way out.
type world struct {
	t         testing.TB
	dir       statedir.Dir
	host, far *os.File
	network   *vpc.Network
	process   *exec.Cmd
}

func newWorld(t testing.TB, policy egresspolicy.Policy) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces, which needs root")
	}
	dir, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir.Run(), 0o700); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, host: newNamespace(t), far: newNamespace(t)}
	w.describe(policy)
	if w.network, err = vpc.Open(dir.VPCs(), testVPC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.network.Delete(); err != nil {
			t.Error(err)
		}
	})
	if err := w.network.Ensure(); err != nil {
		t.Fatal(err)
	}
	all := func(direction securitygroup.Direction) securitygroup.Rule {
		return securitygroup.Rule{Direction: direction, Protocol: securitygroup.AllProtocols, CIDR: netip.MustParsePrefix("0.0.0.0/0")}
	}
	groups := []securitygroup.Group{
		{ID: openGroup, Rules: []securitygroup.Rule{all(securitygroup.Ingress), all(securitygroup.Egress)}},
		{ID: closedGroup, Rules: []securitygroup.Rule{all(securitygroup.Ingress), {Direction: securitygroup.Egress, Protocol: securitygroup.AllProtocols, CIDR: testCIDR}}},
	}
	if err := w.network.SetSecurity(groups, nil); err != nil {
		t.Fatal(err)
	}
	for _, which := range []string{"all", "default"} {
		setting(t, w.host, "ipv6/conf/"+which+"/disable_ipv6", "1") // whose addresses come by themselves, a second later
	}
	w.connect()
	w.start()
	return w
}

func (w *world) describe(policy egresspolicy.Policy) {
	w.t.Helper()
	if err := vpc.Describe(w.dir.VPCs(), vpc.Description{ID: testVPC, CIDR: testCIDR, Egress: policy, Subnets: []vpc.Subnet{{ID: "subnet-0123456789abcdef0", Zone: "us-east-1a", CIDR: netip.MustParsePrefix("172.31.0.0/20")}}}); err != nil {
		w.t.Fatal(err)
	}
}

// connect links the host to the far server, which has a private address, too.
func (w *world) connect() {
	w.t.Helper()
	in := func(namespace *os.File, fn func(h *netlink.Handle) error) {
		w.t.Helper()
		h, err := netlink.NewHandleAt(netns.NsHandle(namespace.Fd()), unix.NETLINK_ROUTE)
		if err != nil {
			w.t.Fatal(err)
		}
		defer h.Close()
		if err := fn(h); err != nil {
			w.t.Fatal(err)
		}
	}
	equip := func(h *netlink.Handle, link string, addresses ...string) error {
		for _, name := range []string{"lo", link} {
			l, err := h.LinkByName(name)
			if err != nil {
				return err
			}
			if err := h.LinkSetUp(l); err != nil {
				return err
			}
			for _, address := range addresses {
				parsed, err := netlink.ParseAddr(address)
				if err != nil {
					return err
				}
				if name == link {
					if err := h.AddrReplace(l, parsed); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	in(w.host, func(h *netlink.Handle) error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = "uplink"
		if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "downlink", PeerNamespace: netlink.NsFd(w.far.Fd())}); err != nil {
			return err
		}
		return equip(h, "uplink", hostAddress+"/24")
	})
	in(w.far, func(h *netlink.Handle) error { return equip(h, "downlink", farAddress+"/24", farPrivate+"/32") })
	in(w.host, func(h *netlink.Handle) error {
		_, all, _ := net.ParseCIDR("0.0.0.0/0")
		return h.RouteReplace(&netlink.Route{Dst: all, Gw: net.ParseIP(farAddress)})
	})
	for _, namespace := range []*os.File{w.host, w.far} {
		waitUp(w.t, namespace)
	}
}

// waitUp waits until a pair of links carries packets.
func waitUp(t testing.TB, namespace *os.File) {
	t.Helper()
	eventually(t, "the links are up", func() error {
		h, err := netlink.NewHandleAt(netns.NsHandle(namespace.Fd()), unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		links, err := h.LinkList()
		if err != nil {
			return err
		}
		for _, link := range links {
			if link.Type() == "veth" && link.Attrs().OperState != netlink.OperUp {
				return fmt.Errorf("%s is %s", link.Attrs().Name, link.Attrs().OperState)
			}
		}
		return nil
	})
}

// start runs the program on the host, until it is stopped or the test is over.
func (w *world) start() {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	w.process = exec.Command(self, "--state-dir", string(w.dir), "--id", testVPC)
	w.process.Env = append(os.Environ(), mark+"=1")
	w.process.Stdout, w.process.Stderr = os.Stderr, os.Stderr
	w.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The process is in the namespace of the thread that starts it, which lives as long as the test: so does the
	// process.
	started, over := make(chan error), make(chan struct{})
	w.t.Cleanup(func() { close(over) })
	go func() {
		_ = host.InNetwork(w.host, func() error {
			started <- w.process.Start()
			<-over
			return nil
		})
	}()
	if err := <-started; err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.stop)
	eventually(w.t, "the way out is open", func() error {
		_, err := w.ask("/readyz")
		return err
	})
}

// stop kills the program.
func (w *world) stop() {
	if w.process.ProcessState == nil {
		_ = w.process.Process.Kill()
		_ = w.process.Wait()
	}
}

// ask asks the program's socket.
func (w *world) ask(path string) (string, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.dir.WayOutSocket(testVPC))
	}}}
	response, err := client.Get("http://egress" + path)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// refusals is how often the program has refused something for a reason.
func (w *world) refusals(reason string) int {
	w.t.Helper()
	text, err := w.ask("/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if number, ok := strings.CutPrefix(line, `muster_egress_refused_total{reason="`+reason+`"} `); ok {
			n, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil {
				w.t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// machine attaches a machine.
func (w *world) machine(address string, groups ...string) *os.File {
	w.t.Helper()
	namespace := newNamespace(w.t)
	if err := w.network.Attach(namespace, vpc.Interface{Machine: "machine " + address, Address: netip.MustParseAddr(address), SecurityGroups: groups}); err != nil {
		w.t.Fatal(err)
	}
	waitUp(w.t, namespace)
	vpcs, err := w.network.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	defer vpcs.Close()
	waitUp(w.t, vpcs)
	return namespace
}

func newNamespace(t testing.TB) *os.File {
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

func eventually(t testing.TB, what string, ask func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if err = ask(); err == nil {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatalf("never: %s: %v", what, err)
}

// listenIn serves connections in a namespace.
func listenIn(t testing.TB, namespace *os.File, address string, serve func(*net.TCPConn)) {
	t.Helper()
	var listener net.Listener
	if err := host.InNetwork(namespace, func() (err error) {
		listener, err = net.Listen("tcp4", address)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(connection.(*net.TCPConn))
		}
	}()
}

// echo sends back what comes, until the sender ends its direction.
func echo(connection *net.TCPConn) {
	defer connection.Close()
	_, _ = io.Copy(connection, connection)
}

// packetsIn serves datagrams in a namespace by sending them back.
func packetsIn(t testing.TB, namespace *os.File, address string) {
	t.Helper()
	var socket net.PacketConn
	if err := host.InNetwork(namespace, func() (err error) {
		socket, err = net.ListenPacket("udp4", address)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = socket.WriteTo(buffer[:n], from)
		}
	}()
}

// dialIn connects from a namespace.
func dialIn(t testing.TB, namespace *os.File, network, address string) (net.Conn, error) {
	t.Helper()
	var connection net.Conn
	err := host.InNetwork(namespace, func() (err error) {
		connection, err = (&net.Dialer{Timeout: 3 * time.Second, FallbackDelay: -1}).Dial(network, address)
		return err
	})
	if err == nil {
		t.Cleanup(func() { _ = connection.Close() })
		_ = connection.SetDeadline(time.Now().Add(30 * time.Second))
	}
	return connection, err
}

// setting reads or sets a switch of a namespace's network.
func setting(t testing.TB, namespace *os.File, name, value string) {
	t.Helper()
	if err := host.InNetwork(namespace, func() error { return os.WriteFile("/proc/sys/net/"+name, []byte(value), 0) }); err != nil {
		t.Fatal(err)
	}
}

// stateOf is all that a namespace's network is set to.
func stateOf(t testing.TB, namespace *os.File) string {
	t.Helper()
	var all []string
	for _, command := range [][]string{{"ip", "addr"}, {"ip", "route", "show", "table", "all"}, {"ip", "rule"}, {"nft", "list", "ruleset"}, {"sh", "-c", "grep -rs . /proc/sys/net/ipv4/conf /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/ip_local_port_range"}} {
		if err := host.InNetwork(namespace, func() error {
			out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
			all = append(all, string(out))
			return err
		}); err != nil && command[0] != "sh" {
			t.Fatalf("%s: %v", strings.Join(command, " "), err)
		}
	}
	return strings.Join(slices.Compact(all), "\n")
}
