// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/loadbalancer"
)

const (
	fromHost = ""
	onHostAt = hostA + ":80"
	inVPCAt  = balancerA + ":80"
)

// The host and the VPC reach the targets in turn. A target that refuses costs nobody a connection.
func TestTheHostAndTheVPCReachTargets(t *testing.T) {
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", named("a"))
	atB := w.listen(machineB, machineB+":8080", named("b"))
	w.set(tcp(machineA+":8080", machineB+":8080"))
	for _, from := range []struct{ machine, address string }{{fromHost, onHostAt}, {machineA, inVPCAt}, {stranger, inVPCAt}} {
		seen := map[string]bool{}
		for range 4 {
			line, _, err := w.greeting(from.machine, from.address)
			if err != nil {
				t.Fatalf("from %q: %v", from.machine, err)
			}
			name, peer, _ := strings.Cut(line, " ")
			if !strings.HasPrefix(peer, balancerA+":") {
				t.Errorf("from %q: the target sees %s", from.machine, peer)
			}
			seen[name] = true
		}
		if len(seen) != 2 {
			t.Errorf("from %q: %v", from.machine, seen)
		}
	}
	_, kept, err := w.greeting(fromHost, onHostAt)
	w.must(err)
	w.must(atB.Close())
	for range 20 {
		if line, _, err := w.greeting(fromHost, onHostAt); err != nil || !strings.HasPrefix(line, "a ") {
			t.Fatalf("with a target that refuses: %q, %v", line, err)
		}
	}
	if _, err := fmt.Fprintln(kept, "still there"); err != nil {
		t.Error(err)
	}

	w.set(tcp()) // and nobody is left
	if _, _, err := w.greeting(fromHost, onHostAt); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("without a target: %v", err)
	}
	if _, _, err := w.greeting(fromHost, hostA+":81"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("another port: %v", err)
	}
}

// Bytes go both ways, and the end of one direction is not the end of the other.
func TestWholeConversations(t *testing.T) {
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", func(c net.Conn) {
		defer c.Close()
		heard, err := io.ReadAll(c)
		if err == nil {
			_, _ = c.Write(bytes.ToUpper(heard))
		}
	})
	w.set(tcp(machineA + ":8080"))
	connection, err := w.dial(fromHost, onHostAt)
	w.must(err)
	sent := bytes.Repeat([]byte("balance "), 1<<19)
	go func() {
		_, _ = connection.Write(sent)
		_ = connection.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(connection)
	if err != nil || !bytes.Equal(got, bytes.ToUpper(sent)) {
		t.Errorf("%d of %d bytes came back: %v", len(got), len(sent), err)
	}
}

// Addresses that somebody wrote into an EndpointSlice lead only to the cluster's own machines and pods.
func TestForbiddenTargets(t *testing.T) {
	w := newWorld(t)
	reached := make(chan string, 16)
	trap := func(name string) func(net.Conn) {
		return func(c net.Conn) {
			reached <- name
			_ = c.Close()
		}
	}
	w.listen(stranger, stranger+":8080", trap("another cluster's machine"))
	w.listen(fromHost, "127.0.0.1:18089", trap("the host"))
	reach, err := w.network.NewDialer(machines{})
	w.must(err)
	defer reach.Close()
	var services net.Listener
	w.must(within(reach.Namespace(), func() (err error) {
		services, err = new(net.ListenConfig).Listen(t.Context(), "tcp4", "10.7.0.3:8080")
		return err
	}))
	defer services.Close()
	go func() {
		if c, err := services.Accept(); err == nil {
			trap("the VPC's own services")(c)
		}
	}()
	for _, target := range []string{
		stranger + ":8080", "10.7.0.3:8080", "127.0.0.1:18089", "169.254.169.254:80", "10.7.0.4:443", balancerA + ":80", "10.7.0.99:10250", "192.0.2.1:80", "10.244.3.3:80",
	} {
		w.set(tcp(target))
		if line, _, err := w.greeting(machineA, inVPCAt); err == nil {
			t.Errorf("%s: %q", target, line)
		}
	}
	select {
	case who := <-reached:
		t.Errorf("%s was reached", who)
	default:
	}
}

func TestDrainingTargets(t *testing.T) {
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", named("a"))
	w.listen(machineB, machineB+":8080", named("b"))
	w.set(tcp(machineA + ":8080"))
	_, kept, err := w.greeting(fromHost, onHostAt)
	w.must(err)
	w.set(func(b *loadbalancer.Balancer) {
		tcp(machineA+":8080", machineB+":8080")(b)
		b.Listeners[0].Targets[0].Draining = true
	})
	for range 10 {
		if line, _, err := w.greeting(fromHost, onHostAt); err != nil || !strings.HasPrefix(line, "b ") {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if err := repeats(kept, "hello"); err != nil {
		t.Errorf("the connection to the target that drains: %v", err)
	}
	w.set(func(b *loadbalancer.Balancer) {
		tcp(machineA + ":8080")(b)
		b.Listeners[0].Targets[0].Draining = true
	})
	if line, _, err := w.greeting(fromHost, onHostAt); err != nil || !strings.HasPrefix(line, "a ") {
		t.Errorf("with no other target: %q, %v", line, err)
	}
	if err := repeats(kept, "hello again"); err != nil {
		t.Error(err)
	}
}

// repeats reports whether the other end is there.
func repeats(c net.Conn, line string) error {
	if _, err := fmt.Fprintln(c, line); err != nil {
		return err
	}
	heard := make([]byte, len(line)+1)
	if _, err := io.ReadFull(c, heard); err != nil {
		return err
	}
	if string(heard) != line+"\n" {
		return fmt.Errorf("heard %q", heard)
	}
	return nil
}

func TestWhoMayConnect(t *testing.T) {
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", named("a"))
	ranges := func(all ...string) func(*loadbalancer.Balancer) {
		return func(b *loadbalancer.Balancer) {
			tcp(machineA + ":8080")(b)
			for _, r := range all {
				b.SourceRanges = append(b.SourceRanges, netip.MustParsePrefix(r))
			}
		}
	}
	who := func() (found string) {
		for _, c := range []struct{ from, address, name string }{{fromHost, onHostAt, "host "}, {machineB, inVPCAt, "b "}, {stranger, inVPCAt, "stranger "}} {
			if _, _, err := w.greeting(c.from, c.address); err == nil {
				found += c.name
			}
		}
		return found
	}
	for _, c := range []struct {
		ranges []string
		want   string
	}{{nil, "host b stranger "}, {[]string{"127.0.0.0/8"}, "host "}, {[]string{machineB + "/32", "192.0.2.0/24"}, "b "}, {[]string{"192.0.2.0/24"}, ""}} {
		w.set(ranges(c.ranges...))
		if got := who(); got != c.want {
			t.Errorf("%v: %q, want %q", c.ranges, got, c.want)
		}
	}
	w.set(func(b *loadbalancer.Balancer) { tcp(machineA + ":8080")(b); b.Internal = true })
	if got := who(); got != "b stranger " {
		t.Errorf("an internal one: %q", got)
	}
}

// A balancer that is removed has no connections left, and its addresses are free.
func TestRemoval(t *testing.T) {
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", named("a"))
	w.set(tcp(machineA + ":8080"))
	_, kept, err := w.greeting(fromHost, onHostAt)
	w.must(err)
	w.must(w.network.RemoveBalancers(func(b loadbalancer.Balancer) bool { return b.UID == "1" }))
	w.eventually("nobody listens", func() error {
		c, err := w.dial(fromHost, onHostAt)
		if errors.Is(err, unix.ECONNREFUSED) {
			return nil
		}
		if err == nil {
			err = errors.Join(errors.New("somebody listens"), c.Close())
		}
		return err
	})
	if _, err := kept.Read(make([]byte, 1)); err == nil {
		t.Error("its connections go on")
	}
	taken, err := w.network.Taken()
	w.must(err)
	if len(taken) != 1 {
		t.Errorf("taken are %v", taken)
	}
	w.attach(balancerA) // which no machine got before
	w.listen(balancerA, balancerA+":80", named("machine"))
	w.eventually("the machine is reached", func() error {
		line, _, err := w.greeting(machineA, inVPCAt)
		if err == nil && !strings.HasPrefix(line, "machine ") {
			err = errors.New(line)
		}
		return err
	})
}

// After the process was ended and started again everything is served as before, without anybody's help.
func TestStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", named("a"))
	w.set(tcp(machineA + ":8080"))
	w.stop()
	if _, err := w.dial(fromHost, onHostAt); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("while it is away: %v", err)
	}
	w.run()
	w.eventually("it is served", func() error { _, _, err := w.greeting(machineB, inVPCAt); return err })
	if _, _, err := w.greeting(fromHost, onHostAt); err != nil {
		t.Error(err)
	}
}

// A port that another program has is told, and opened once it is free.
func TestPortInUse(t *testing.T) {
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", named("a"))
	other := w.listen(fromHost, ":18088", named("other"))
	b := loadbalancer.Balancer{
		Cluster: cluster, Namespace: "shop", Service: "web", UID: "1", DNSName: "web.example", Address: netip.MustParseAddr(balancerA), HostAddress: netip.MustParseAddr(hostA),
		Spec: loadbalancer.Spec{Listeners: []loadbalancer.Listener{{Protocol: loadbalancer.TCP, Port: 18088, Targets: []loadbalancer.Target{{Address: netip.MustParseAddrPort(machineA + ":8080")}}}}},
	}
	w.must(w.network.SetBalancer(b))
	status := func() (found ListenerStatus) {
		if all := w.server.Status().Balancers; len(all) == 1 {
			found = all[0].Listeners[0]
		}
		return found
	}
	w.eventually("the status says so", func() error {
		if s := status(); s.Host.Open || s.Host.Code != PortInUse || !s.VPC.Open {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	w.must(other.Close())
	w.eventually("it is open", func() error {
		if s := status(); !s.Host.Open {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	if line, _, err := w.greeting(fromHost, hostA+":18088"); err != nil || !strings.HasPrefix(line, "a ") {
		t.Errorf("%q, %v", line, err)
	}
}

func TestIdleConnections(t *testing.T) {
	w := newWorld(t)
	w.listen(machineA, machineA+":8080", named("a"))
	w.set(func(b *loadbalancer.Balancer) { tcp(machineA + ":8080")(b); b.IdleSeconds = 1 })
	_, c, err := w.greeting(fromHost, onHostAt)
	w.must(err)
	begun := time.Now()
	for time.Since(begun) < 2500*time.Millisecond {
		if err := repeats(c, "busy"); err != nil {
			t.Fatalf("a busy connection after %s: %v", time.Since(begun), err)
		}
		<-time.After(200 * time.Millisecond)
	}
	begun = time.Now()
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, unix.ETIMEDOUT) || time.Since(begun) > 5*time.Second {
		t.Errorf("an idle connection: %v after %s", err, time.Since(begun))
	}
}

func TestProxyProtocol(t *testing.T) {
	w := newWorld(t)
	heard := make(chan []byte, 1)
	w.listen(machineA, machineA+":8080", func(c net.Conn) {
		defer c.Close()
		header := make([]byte, 28)
		_, _ = io.ReadFull(c, header)
		heard <- header
	})
	w.set(func(b *loadbalancer.Balancer) { tcp(machineA + ":8080")(b); b.ProxyProtocol = true })
	c, err := w.dial(machineB, inVPCAt)
	w.must(err)
	header := <-heard
	source := c.LocalAddr().(*net.TCPAddr).AddrPort()
	want := append([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x0a\x07\x00\x0c\x0a\x07\x00\x14"), byte(source.Port()>>8), byte(source.Port()), 0, 80)
	if !bytes.Equal(header, want) {
		t.Errorf("%x, want %x", header, want)
	}
}
