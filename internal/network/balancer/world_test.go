// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Beside those they use addresses of the host's loopback that
// balancers have.

package balancer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/host"
)

const (
	cluster   = "muster"
	groupID   = "sg-0123456789abcdef0"
	vpcID     = "vpc-0123456789abcdef0"
	machineA  = "10.7.0.11" // of the cluster
	machineB  = "10.7.0.12" // of the cluster
	stranger  = "10.7.0.13" // of another one
	balancerA = "10.7.0.20"
	hostA     = "127.130.7.20"
)

// machines says whose they are.
type machines map[string]string

func (m machines) Cluster(address netip.Addr) (string, bool, error) {
	name, known := m[address.String()]
	return name, known, nil
}

// world is a VPC with two machines of the cluster and one of another, and the process of its load balancers.
type world struct {
	t       *testing.T
	network *vpc.Network
	dir     string
	server  *Server
	stop    func()
	spaces  map[string]*os.File
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces, which needs root")
	}
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "vpc"), spaces: map[string]*os.File{}}
	cidr := netip.MustParsePrefix("10.7.0.0/20")
	network, err := vpc.New(vpc.Config{Dir: w.dir, ID: vpcID, CIDR: cidr})
	if err != nil {
		t.Fatal(err)
	}
	w.network = network
	t.Cleanup(func() {
		if err := network.Delete(); err != nil {
			t.Error(err)
		}
	})
	w.must(network.Ensure())
	all := netip.MustParsePrefix("0.0.0.0/0")
	w.must(network.SetSecurity([]securitygroup.Group{{ID: groupID, Rules: []securitygroup.Rule{ // as a cluster's own
		{Direction: securitygroup.Ingress, Protocol: securitygroup.AllProtocols, Group: groupID},
		{Direction: securitygroup.Egress, Protocol: securitygroup.AllProtocols, CIDR: all},
	}}}, nil))
	w.must(network.SetEndpoint(vpc.Endpoint{
		Cluster: cluster, Addresses: []netip.Addr{netip.MustParseAddr("10.7.0.4")}, APIServer: netip.MustParseAddrPort("127.0.0.1:6443"),
		EgressSocket: filepath.Join(t.TempDir(), "e"), PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), SecurityGroups: []string{groupID},
	}))
	for _, address := range []string{machineA, machineB, stranger} {
		w.attach(address)
	}
	w.run()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// attach makes a machine.
func (w *world) attach(address string) {
	w.t.Helper()
	holder := exec.Command("sleep", "600")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	w.must(holder.Start())
	w.t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(holder.Process.Pid), "ns/net"))
	w.must(err)
	w.t.Cleanup(func() { _ = file.Close() })
	w.spaces[address] = file
	w.must(w.network.Attach(file, vpc.Interface{Machine: address, Address: netip.MustParseAddr(address), SecurityGroups: []string{groupID}}))
}

// run starts the server, which ends with the test or when stop is called.
func (w *world) run() {
	w.t.Helper()
	socket := filepath.Join(w.t.TempDir(), "s")
	server, err := New(Config{
		Network: w.network, Machines: machines{machineA: cluster, machineB: cluster, stranger: "another"}, Dir: w.dir, Socket: socket,
		Log: slog.New(slog.DiscardHandler),
	})
	w.must(err)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	w.server = server
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			w.must(err)
		case <-time.After(time.Minute):
			w.t.Error("it goes on after its context has ended")
		}
	}
	w.t.Cleanup(func() { w.stop() })
	w.eventually("it serves", func() error {
		_, err := AskStatus(w.t.Context(), socket)
		return err
	})
}

func (w *world) eventually(what string, try func() error) {
	w.t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if err = try(); err == nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	w.t.Fatalf("waited in vain until %s: %v", what, err)
}

// set has the balancer serve a port with targets, and waits until it does.
func (w *world) set(change func(*loadbalancer.Balancer)) {
	w.t.Helper()
	b := loadbalancer.Balancer{
		Cluster: cluster, Namespace: "shop", Service: "web", UID: "1", DNSName: "web.example", Address: netip.MustParseAddr(balancerA),
		HostAddress: netip.MustParseAddr(hostA), Spec: loadbalancer.Spec{IdleSeconds: 3600, Listeners: []loadbalancer.Listener{{Protocol: loadbalancer.TCP, Port: 80}}},
	}
	change(&b)
	w.must(w.network.SetBalancer(b))
	w.eventually("the balancer is as it should be", func() error {
		w.server.mutex.Lock()
		f := w.server.fronts[keyOf(b)]
		w.server.mutex.Unlock()
		if f == nil || f.settings.Load() == nil || !f.settings.Load().Equal(b.Spec) {
			return errors.New("it is as it was")
		}
		status := w.server.Status()
		if len(status.Balancers) != 1 || len(status.Balancers[0].Listeners) != len(b.Listeners) {
			return fmt.Errorf("%+v", status)
		}
		for i, l := range status.Balancers[0].Listeners {
			same := slices.EqualFunc(l.Targets, b.Listeners[i].Targets, func(s TargetStatus, t loadbalancer.Target) bool {
				return s.Address == t.Address && (s.State == Draining) == t.Draining
			})
			if !l.VPC.Open || l.Host.Open == b.Internal || !same {
				return fmt.Errorf("%+v", l)
			}
		}
		return nil
	})
}

// tcp gives the one TCP port targets.
func tcp(targets ...string) func(*loadbalancer.Balancer) {
	return func(b *loadbalancer.Balancer) {
		for _, target := range targets {
			b.Listeners[0].Targets = append(b.Listeners[0].Targets, loadbalancer.Target{Address: netip.MustParseAddrPort(target)})
		}
	}
}

// in does something in the namespace of a machine, or on the host if there is none.
func (w *world) in(machine string, fn func() error) error {
	if machine == "" {
		return fn()
	}
	return host.InNetwork(w.spaces[machine], fn)
}

// listen serves TCP on a machine.
func (w *world) listen(machine, address string, serve func(net.Conn)) net.Listener {
	w.t.Helper()
	var listener net.Listener
	w.must(w.in(machine, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(w.t.Context(), "tcp4", address)
		return err
	}))
	w.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(connection)
		}
	}()
	return listener
}

// named says a name and then repeats each line.
func named(name string) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		_, _ = fmt.Fprintf(c, "%s %s\n", name, c.RemoteAddr())
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			_, _ = fmt.Fprintln(c, lines.Text())
		}
	}
}

// dial connects from a machine, or from the host.
func (w *world) dial(from, address string) (net.Conn, error) {
	w.t.Helper()
	var connection net.Conn
	err := w.in(from, func() (err error) {
		connection, err = (&net.Dialer{Timeout: 10 * time.Second, FallbackDelay: -1}).DialContext(w.t.Context(), "tcp4", address)
		return err
	})
	if err == nil {
		w.t.Cleanup(func() { _ = connection.Close() })
		err = connection.SetDeadline(time.Now().Add(10 * time.Second))
	}
	return connection, err
}

// greeting is the first line that a connection from somewhere gets.
func (w *world) greeting(from, address string) (string, net.Conn, error) {
	w.t.Helper()
	connection, err := w.dial(from, address)
	if err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	return line, connection, err
}
