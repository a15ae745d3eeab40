// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/platform/host"
)

const (
	clients = "sg-0000000000000000a"
	servers = "sg-0000000000000000b"
)

// sender is a group whose members may send anything to anybody.
func sender(id string) securitygroup.Group {
	return group(id, rule(securitygroup.Egress, securitygroup.AllProtocols, 0, "0.0.0.0/0"))
}

// set puts groups in force.
func set(t *testing.T, n *Network, groups ...securitygroup.Group) {
	t.Helper()
	if err := n.SetSecurity(groups, nil); err != nil {
		t.Fatal(err)
	}
}

// answers reports whether a connection is answered within a time. Packets are dropped without a word.
func answers(t *testing.T, from *os.File, address string, within time.Duration) bool {
	t.Helper()
	err := host.InNetwork(from, func() error {
		connection, err := (&net.Dialer{Timeout: within, FallbackDelay: -1}).DialContext(t.Context(), "tcp4", address)
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
	if err != nil && !os.IsTimeout(err) {
		t.Logf("%s: %v", address, err)
	}
	return err == nil
}

// talks sends a line on a connection that is open, and reads it again.
func talks(connection net.Conn, reader *bufio.Reader) error {
	if err := connection.SetDeadline(time.Now().Add(generous)); err != nil {
		return err
	}
	if _, err := io.WriteString(connection, "hello\n"); err != nil {
		return err
	}
	line, err := reader.ReadString('\n')
	if err == nil && line != "hello\n" {
		err = fmt.Errorf("got %q", line)
	}
	return err
}

// repeat answers each line of each connection with itself.
func repeat(t *testing.T, listener net.Listener) {
	t.Helper()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				_, _ = io.Copy(connection, connection)
			}()
		}
	}()
}

// A rule opens a port and its end closes it, by range and by group; a connection that is open goes on.
func TestRulesOpenAndClose(t *testing.T) {
	n := newNetwork(t)
	client, server := newMachineIn(t, n, firstMachine, clients), newMachineIn(t, n, secondMachine, servers)
	repeat(t, listenIn(t, server, secondMachine+":80"))
	repeat(t, listenIn(t, server, secondMachine+":81"))
	for name, peer := range map[string]string{"group": clients, "range": "192.168.64.0/20", "anywhere": "0.0.0.0/0", "address": firstMachine + "/32"} {
		t.Run(name, func(t *testing.T) {
			set(t, n, sender(clients), group(servers))
			if answers(t, client, secondMachine+":80", silence) {
				t.Fatal("without a rule the server answers")
			}
			set(t, n, sender(clients), group(servers, rule(securitygroup.Ingress, "tcp", 80, peer)))
			connection, err := dialIn(t, client, secondMachine+":80")
			if err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(connection)
			if err := talks(connection, reader); err != nil {
				t.Fatal(err)
			}
			if answers(t, client, secondMachine+":81", silence) {
				t.Error("another port is open, too")
			}
			set(t, n, sender(clients), group(servers))
			if answers(t, client, secondMachine+":80", silence) {
				t.Error("the server answers after the rule is gone")
			}
			if err := talks(connection, reader); err != nil {
				t.Errorf("a connection that was open: %v", err)
			}
		})
	}
}

// The sender's groups decide, too; and nobody gets anything who is in no group or in one that is not described.
func TestEgressAndNoGroups(t *testing.T) {
	n := newNetwork(t)
	client, server := newMachineIn(t, n, firstMachine, clients), newMachineIn(t, n, secondMachine, servers)
	repeat(t, listenIn(t, server, secondMachine+":80"))
	repeat(t, listenIn(t, server, secondMachine+":81"))
	everything := group(servers, rule(securitygroup.Ingress, securitygroup.AllProtocols, 0, "0.0.0.0/0"))
	for name, c := range map[string]struct {
		groups []securitygroup.Group
		want   [2]bool
	}{
		"no rule":          {[]securitygroup.Group{group(clients), everything}, [2]bool{}},
		"by range":         {[]securitygroup.Group{group(clients, rule(securitygroup.Egress, "tcp", 80, secondMachine+"/32")), everything}, [2]bool{true, false}},
		"by group":         {[]securitygroup.Group{group(clients, rule(securitygroup.Egress, "tcp", 81, servers)), everything}, [2]bool{false, true}},
		"a stranger group": {[]securitygroup.Group{everything}, [2]bool{}},
		"nothing at all":   {nil, [2]bool{}},
		"of another range": {[]securitygroup.Group{group(clients, rule(securitygroup.Egress, "tcp", 80, "10.0.0.0/8")), everything}, [2]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, n, c.groups...)
			if got := [2]bool{answers(t, client, secondMachine+":80", long(c.want[0])), answers(t, client, secondMachine+":81", long(c.want[1]))}; got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// A pod's traffic is its machine's: by group, and by a range that its machine is in.
func TestPodsAreTheirMachines(t *testing.T) {
	n := newNetwork(t)
	client, server := newMachineIn(t, n, firstMachine, clients), newMachineIn(t, n, secondMachine, servers)
	for address, machine := range map[string]*os.File{firstMachine: client, secondMachine: server} {
		pod := map[string]string{firstMachine: "10.244.1.7", secondMachine: "10.244.2.7"}[address]
		if err := n.SetRoute(Route{PodCIDR: netip.MustParsePrefix(pod[:len(pod)-1] + "0/24"), Machine: netip.MustParseAddr(address)}); err != nil {
			t.Fatal(err)
		}
		if err := withHandle(machine, func(h *netlink.Handle) error {
			lo, err := h.LinkByName("lo")
			if err != nil {
				return err
			}
			return h.AddrReplace(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(pod + "/32"))})
		}); err != nil {
			t.Fatal(err)
		}
	}
	repeat(t, listenIn(t, server, "10.244.2.7:80"))
	fromPod := func() bool {
		err := host.InNetwork(client, func() error {
			connection, err := (&net.Dialer{Timeout: 700 * time.Millisecond, FallbackDelay: -1, LocalAddr: &net.TCPAddr{IP: net.ParseIP("10.244.1.7")}}).DialContext(t.Context(), "tcp4", "10.244.2.7:80")
			if err == nil {
				_ = connection.Close()
			}
			return err
		})
		return err == nil
	}
	for peer, want := range map[string]bool{clients: true, "192.168.64.0/20": true, "10.244.1.0/24": true, servers: false, "192.168.96.0/20": false, "10.244.2.0/24": false} {
		set(t, n, sender(clients), group(servers, rule(securitygroup.Ingress, "tcp", 80, peer)))
		if got := fromPod(); got != want {
			t.Errorf("from %s: %v, want %v", peer, got, want)
		}
	}
}

// API servers' endpoints are in groups as machines are, for what comes to them and what goes from them. Services of the
// VPC itself need no rule.
func TestEndpointsAreInGroups(t *testing.T) {
	n := newNetwork(t)
	machine := newMachineIn(t, n, firstMachine, clients)
	e := endpointOf(apiServerSaying(t, "one"), filepath.Join(t.TempDir(), "one.sock"))
	e.SecurityGroups = []string{servers}
	stop := startRelay(t, n, e.APIServer.String(), e.EgressSocket)
	defer func() { stop() }()
	if err := n.SetEndpoint(e); err != nil {
		t.Fatal(err)
	}
	repeat(t, listenIn(t, machine, firstMachine+":10250"))
	repeat(t, listenIn(t, machine, firstMachine+":10251"))
	set(t, n, sender(clients), group(servers))
	if answers(t, machine, "192.168.64.4:443", silence) {
		t.Error("the endpoint answers without a rule")
	}
	if _, err := connectThrough(t, e.EgressSocket, firstMachine+":10250", silence); err == nil {
		t.Error("the API server reaches a machine without a rule")
	}
	set(t, n, group(clients, rule(securitygroup.Egress, "tcp", 443, servers), rule(securitygroup.Ingress, "tcp", 10250, servers)),
		group(servers, rule(securitygroup.Ingress, "tcp", 443, clients), rule(securitygroup.Egress, "tcp", 10250, clients), rule(securitygroup.Egress, "tcp", 10251, clients)))
	if !answers(t, machine, "192.168.64.4:443", generous) || !answers(t, machine, "192.168.96.4:443", generous) {
		t.Error("the endpoint does not answer with rules")
	}
	if connection, err := connectThrough(t, e.EgressSocket, firstMachine+":10250", generous); err != nil {
		t.Errorf("with rules the API server does not reach a machine: %v", err)
	} else if err := talks(connection, bufio.NewReader(connection)); err != nil {
		t.Error(err)
	}
	if _, err := connectThrough(t, e.EgressSocket, firstMachine+":10251", silence); err == nil {
		t.Error("the machine's groups are not asked about its API server")
	}
	set(t, n)
	if _, err := dialIn(t, machine, "192.168.64.3:443"); err == nil || os.IsTimeout(err) { // nobody listens, and says so
		t.Errorf("the VPC's own address: %v", err)
	}
}

// connectThrough asks an egress socket for a machine.
func connectThrough(t *testing.T, socket, target string, within time.Duration) (net.Conn, error) {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	length, err := connection.Read(answer)
	if err == nil && !strings.Contains(string(answer[:length]), " 200 ") {
		err = errors.New(string(answer[:length]))
	}
	return connection, err
}

// Groups are what is kept of them on disk, whoever ends when: rules that somebody kept and did not get to put in force
// are put in force next, and a new namespace has them before anything is forwarded.
func TestRulesOutliveEverybody(t *testing.T) {
	n := newNetwork(t)
	newMachineIn(t, n, firstMachine, clients)
	loaded := func() string {
		t.Helper()
		namespace, err := n.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = namespace.Close() }()
		var out []byte
		err = host.InNetwork(namespace, func() (err error) {
			out, err = exec.CommandContext(t.Context(), nft(), "list", "chain", "inet", securitygroup.Table, "egress-"+clients).CombinedOutput()
			return err
		})
		if err != nil {
			return string(out)
		}
		return string(out)
	}
	set(t, n, group(clients, rule(securitygroup.Egress, "tcp", 80, "0.0.0.0/0")))
	first := loaded()
	if !strings.Contains(first, "dport 80") {
		t.Fatal(first)
	}
	// Cut short between the disk and the kernel.
	if err := n.changeSecurity(func(s *security) error {
		s.Groups = []securitygroup.Group{group(clients, rule(securitygroup.Egress, "tcp", 81, "0.0.0.0/0"))}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, loaded()); diff != "" {
		t.Errorf("the disk alone changed the kernel: %s", diff)
	}
	if err := n.Ensure(); err != nil {
		t.Fatal(err)
	}
	second := loaded()
	if !strings.Contains(second, "dport 81") || strings.Contains(second, "dport 80") {
		t.Error(second)
	}
	// A file that cannot be read leaves what is in force.
	kept, err := os.ReadFile(n.securityPath())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.securityPath(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.Ensure(); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("a damaged file: %v", err)
	}
	if diff := cmp.Diff(second, loaded()); diff != "" {
		t.Error(diff)
	}
	// And a namespace made anew, as after a reboot, forwards nothing before it has rules.
	dir := filepath.Join(t.TempDir(), "vpc")
	anew, err := New(Config{Dir: dir, ID: vpcID, CIDR: cidr, Subnets: subnets})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = anew.Delete() })
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(anew.securityPath(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := anew.Ensure(); err == nil {
		t.Error("a network without rules is made")
	}
	namespace, err := anew.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	if err := host.InNetwork(namespace, func() error {
		forwards, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
		if err == nil && string(forwards) != "0\n" {
			err = errors.New("it forwards without rules")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(anew.securityPath(), kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := anew.Ensure(); err != nil {
		t.Fatal(err)
	}
	n = anew
	if diff := cmp.Diff(second, loaded()); diff != "" {
		t.Error(diff)
	}
}

// Groups of a machine do not hold for the next machine with its address, and connections to the first are not let
// through to the next.
func TestTheNextMachineOfAnAddress(t *testing.T) {
	n := newNetwork(t)
	client := newMachineIn(t, n, firstMachine, clients)
	server := newMachineIn(t, n, secondMachine, servers)
	set(t, n, sender(clients), group(servers, rule(securitygroup.Ingress, securitygroup.AllProtocols, 0, "0.0.0.0/0")))
	var socket net.PacketConn
	if err := host.InNetwork(server, func() (err error) {
		socket, err = new(net.ListenConfig).ListenPacket(t.Context(), "udp4", secondMachine+":4000")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	send := func(message string) {
		t.Helper()
		if err := host.InNetwork(client, func() error {
			connection, err := (&net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(firstMachine), Port: 4000}}).DialContext(t.Context(), "udp4", secondMachine+":4000")
			if err != nil {
				return err
			}
			defer connection.Close()
			_, err = io.WriteString(connection, message)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	send("to the first one")
	_, sender4000, err := socket.ReadFrom(make([]byte, 64))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := socket.WriteTo([]byte("an answer"), sender4000); err != nil { // from now on it is a connection
		t.Fatal(err)
	}
	if err := n.Detach(netip.MustParseAddr(secondMachine)); err != nil {
		t.Fatal(err)
	}
	next := newNamespace(t)
	if err := n.Attach(next, Interface{Machine: "another", Address: netip.MustParseAddr(secondMachine)}); err != nil {
		t.Fatal(err)
	}
	// A controller that has not heard yet speaks of the first one.
	if err := n.SetSecurity([]securitygroup.Group{sender(clients), group(servers, rule(securitygroup.Ingress, securitygroup.AllProtocols, 0, "0.0.0.0/0"))},
		[]Interface{interfaceOf(secondMachine, servers)}); err != nil {
		t.Fatal(err)
	}
	heard := listenUDP(t, next, secondMachine+":4000")
	send("to the first one again")
	select {
	case from := <-heard:
		t.Errorf("the next machine hears %s", from)
	case <-time.After(time.Second):
	}
	if err := n.SetSecurity([]securitygroup.Group{sender(clients), group(servers, rule(securitygroup.Ingress, securitygroup.AllProtocols, 0, "0.0.0.0/0"))},
		[]Interface{{Machine: "another", Address: netip.MustParseAddr(secondMachine), SecurityGroups: []string{servers}}}); err != nil {
		t.Fatal(err)
	}
	send("to the next one")
	select {
	case <-heard:
	case <-time.After(generous):
		t.Error("the next machine hears nothing with rules of its own")
	}
}
