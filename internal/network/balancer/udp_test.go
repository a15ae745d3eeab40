// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/network/loadbalancer"
)

// packets answers each packet with a name and itself.
func (w *world) packets(machine, address, name string) net.PacketConn {
	w.t.Helper()
	var socket net.PacketConn
	w.must(w.in(machine, func() (err error) {
		socket, err = new(net.ListenConfig).ListenPacket(w.t.Context(), "udp4", address)
		return err
	}))
	w.t.Cleanup(func() { _ = socket.Close() })
	go func() {
		packet := make([]byte, maxPacket)
		for {
			n, peer, err := socket.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = socket.WriteTo(append([]byte(name+" "), packet[:n]...), peer)
		}
	}()
	return socket
}

// client is a socket that speaks with a balancer.
func (w *world) client(from, address string) net.Conn {
	w.t.Helper()
	var c net.Conn
	w.must(w.in(from, func() (err error) {
		c, err = new(net.Dialer).DialContext(w.t.Context(), "udp4", address)
		return err
	}))
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// exchange sends a packet until it is answered: one may be lost when a target has just gone.
func exchange(c net.Conn, packet string) (string, error) {
	answer := make([]byte, maxPacket)
	var err error
	for range 120 { // a minute
		if _, err = c.Write([]byte(packet)); err != nil {
			continue
		}
		_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		var n int
		if n, err = c.Read(answer); err == nil {
			return string(answer[:n]), nil
		}
	}
	return "", err
}

func udp(targets ...string) func(*loadbalancer.Balancer) {
	return func(b *loadbalancer.Balancer) {
		b.Listeners[0].Protocol = loadbalancer.UDP
		tcp(targets...)(b)
	}
}

func TestUDP(t *testing.T) {
	w := newWorld(t)
	w.packets(machineA, machineA+":53", "a")
	atB := w.packets(machineB, machineB+":53", "b")
	w.set(udp(machineA+":53", machineB+":53"))
	clients := map[string]net.Conn{}
	for _, from := range []struct{ machine, address string }{{fromHost, onHostAt}, {machineA, inVPCAt}} {
		for i := range 4 {
			c := w.client(from.machine, from.address)
			first, err := exchange(c, "hello")
			w.must(err)
			for n := range 3 { // one client, one target
				if again, err := exchange(c, fmt.Sprint("again ", n)); err != nil || again[:1] != first[:1] {
					t.Errorf("client %d: %q after %q, %v", i, again, first, err)
				}
			}
			clients[first[:1]] = c
		}
	}
	if len(clients) != 2 {
		t.Fatalf("all are at %v", clients)
	}
	large := strings.Repeat("x", 60000)
	if got, err := exchange(clients["a"], large); err != nil || got != "a "+large {
		t.Errorf("a large packet: %d bytes, %v", len(got), err)
	}
	w.must(atB.Close()) // it refuses, and its clients go elsewhere
	if got, err := exchange(clients["b"], "where"); err != nil || got != "a where" {
		t.Errorf("after its target is gone: %q, %v", got, err)
	}
	w.packets(machineB, machineB+":54", "new")
	w.set(udp(machineB + ":54")) // and no other target
	if got, err := exchange(clients["a"], "where"); err != nil || got != "new where" {
		t.Errorf("after its target is not listed any more: %q, %v", got, err)
	}
}

func TestUDPWhoMaySend(t *testing.T) {
	w := newWorld(t)
	w.packets(machineA, machineA+":53", "a")
	w.set(func(b *loadbalancer.Balancer) {
		udp(machineA + ":53")(b)
		b.SourceRanges = []netip.Prefix{netip.MustParsePrefix(machineB + "/32")}
	})
	if got, err := exchange(w.client(machineB, inVPCAt), "hello"); err != nil {
		t.Errorf("%q, %v", got, err)
	}
	silent := w.client(fromHost, onHostAt)
	if _, err := silent.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	_ = silent.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	var late net.Error
	if n, err := silent.Read(make([]byte, 100)); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("the host is answered: %d bytes, %v", n, err)
	}
}

// Clients of UDP and connections of TCP have the same places: those of one balancer must not take everything that the
// process has.
func TestUDPTakesPlaces(t *testing.T) {
	w := newWorld(t)
	w.packets(machineA, machineA+":53", "a")
	w.set(udp(machineA + ":53"))
	w.server.mutex.Lock()
	var slots chan struct{}
	for _, f := range w.server.fronts {
		slots = f.slots
	}
	w.server.mutex.Unlock()
	if _, err := exchange(w.client(fromHost, onHostAt), "hello"); err != nil || len(slots) != 1 {
		t.Fatalf("one client has %d places: %v", len(slots), err)
	}
	for len(slots) < cap(slots) {
		slots <- struct{}{}
	}
	second := w.client(fromHost, onHostAt)
	if _, err := second.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	_ = second.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := second.Read(make([]byte, 100)); err == nil {
		t.Errorf("a client without a place is answered: %d bytes", n)
	}
	for len(slots) > 1 {
		<-slots
	}
	if _, err := exchange(second, "hello"); err != nil {
		t.Error(err)
	}
	w.set(udp(machineB + ":53")) // whose flows are others
	w.eventually("the places are given back", func() error {
		if n := len(slots); n != 0 {
			return fmt.Errorf("%d are taken", n)
		}
		return nil
	})
}

// A client that sends from as many ports as it likes leaves room for another one.
func TestUDPClientsShare(t *testing.T) {
	w := newWorld(t)
	w.packets(machineA, machineA+":53", "a")
	w.set(udp(machineA + ":53"))
	all := make([]net.Conn, 0, maxFlows+50)
	for range maxFlows + 50 {
		all = append(all, w.client(machineA, inVPCAt))
	}
	for range 5 { // some packets are lost
		for _, c := range all {
			if _, err := c.Write([]byte("greedy")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Microsecond) //nolint:forbidigo // it sends no faster than is read
		}
	}
	if got, err := exchange(w.client(machineB, inVPCAt), "hello"); err != nil || got != "a hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// The same holds for connections of TCP, however many clients take all that they get.
func TestClientsShareABalancer(t *testing.T) {
	f := &front{slots: make(chan struct{}, maxConnections)}
	client := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
	for range maxConnections {
		f.take(client(0))
	}
	if len(f.slots) < maxConnections/2 {
		t.Errorf("one client alone has %d", len(f.slots))
	}
	for range maxConnections {
		for n := range 30 {
			f.take(client(n))
		}
	}
	for n := range 50 {
		if !f.take(client(100)) {
			t.Fatalf("with %d of others, another client has %d", len(f.slots), n)
		}
	}
	for range 50 {
		f.give(client(100))
	}
	if f.clients.has[client(100)] != 0 {
		t.Error("what is given back counts")
	}
}

// A client of UDP does not take the memory of the largest packet for two minutes after its last packet.
func TestUDPClientsTakeLittle(t *testing.T) {
	w := newWorld(t)
	w.packets(machineA, machineA+":53", "a")
	w.set(udp(machineA + ":53"))
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := used()
	const many = 500
	for range many {
		if _, err := exchange(w.client(machineB, inVPCAt), "hello"); err != nil {
			t.Fatal(err)
		}
	}
	if each := (int64(used()) - int64(before)) / many; each > 32<<10 {
		t.Errorf("a client takes %d bytes", each)
	}
}
