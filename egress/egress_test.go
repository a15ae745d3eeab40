// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/platform/host"
)

func nat() egresspolicy.Policy { return egresspolicy.Policy{Mode: egresspolicy.NAT} }

// roundTrip sends bytes, ends its direction and reads what comes back.
func roundTrip(connection net.Conn, data []byte) ([]byte, error) {
	sent := make(chan error, 1)
	go func() {
		_, err := connection.Write(data)
		sent <- errors.Join(err, connection.(*net.TCPConn).CloseWrite())
	}()
	got, err := io.ReadAll(connection)
	return got, errors.Join(err, <-sent)
}

func TestConnectionsLeave(t *testing.T) {
	w := newWorld(t, nat())
	before := stateOf(t, w.host)
	listenIn(t, w.far, ":80", echo)
	m := w.machine(firstMachine, openGroup)
	data := make([]byte, 32<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	for _, size := range []int{0, 1, 1460, 100_000, len(data)} {
		connection, err := dialIn(t, m, "tcp4", farAddress+":80")
		if err != nil {
			t.Fatal(err)
		}
		got, err := roundTrip(connection, data[:size])
		if err != nil || sha256.Sum256(got) != sha256.Sum256(data[:size]) {
			t.Errorf("%d bytes: %d came back, %v", size, len(got), err)
		}
	}
	if diff := cmp.Diff(before, stateOf(t, w.host)); diff != "" {
		t.Errorf("the host has changed (-before +after):\n%s", diff)
	}
	w.stop()
	if diff := cmp.Diff(before, stateOf(t, w.host)); diff != "" {
		t.Errorf("the host was left changed (-before +after):\n%s", diff)
	}
	// Without it nothing leaves, at once.
	begun := time.Now()
	if _, err := dialIn(t, m, "tcp4", farAddress+":80"); !errors.Is(err, unix.ENETUNREACH) || time.Since(begun) > time.Second {
		t.Errorf("after its end: %v", err)
	}
	w.start()
	if _, err := dialIn(t, m, "tcp4", farAddress+":80"); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}

// Who dials is told what a host would tell.
func TestWhatMachinesAreTold(t *testing.T) {
	w := newWorld(t, nat())
	m := w.machine(firstMachine, openGroup)
	if _, err := dialIn(t, m, "tcp4", farAddress+":81"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port that nobody listens on: %v", err)
	}
	listenIn(t, w.far, ":82", func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 1)); abort(c) })
	connection, err := dialIn(t, m, "tcp4", farAddress+":82")
	if err == nil {
		_, _ = connection.Write([]byte("x"))
		_, err = connection.Read(make([]byte, 1))
	}
	if !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a connection that the server resets: %v", err)
	}
	served := make(chan error, 1)
	listenIn(t, w.far, ":83", func(c *net.TCPConn) { _, err := io.Copy(io.Discard, c); served <- err })
	if connection, err = dialIn(t, m, "tcp4", farAddress+":83"); err != nil {
		t.Fatal(err)
	}
	_, _ = connection.Write([]byte("half of it"))
	_ = connection.(*net.TCPConn).SetLinger(0)
	_ = connection.Close()
	if err := <-served; !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a connection that the machine resets ends with %v", err)
	}
}

func TestDatagramsLeave(t *testing.T) {
	w := newWorld(t, nat())
	packetsIn(t, w.far, ":53")
	m := w.machine(firstMachine, openGroup)
	for _, size := range []int{1, 512, 1472, 8000, 60_000} {
		connection, err := dialIn(t, m, "udp4", farAddress+":53")
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.Repeat([]byte{byte(size)}, size)
		buffer := make([]byte, 64<<10)
		for range 3 {
			if _, err := connection.Write(data); err != nil {
				t.Fatal(err)
			}
			n, err := connection.Read(buffer)
			if err != nil || !bytes.Equal(buffer[:n], data) {
				t.Errorf("%d bytes: %d came back, %v", size, n, err)
			}
		}
	}
	connection, err := dialIn(t, m, "udp4", farPrivate+":53")
	if err == nil {
		_, _ = connection.Write([]byte("x"))
		_, err = connection.Read(make([]byte, 1))
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a datagram that is refused: %v", err)
	}
}

func TestPing(t *testing.T) {
	w := newWorld(t, nat())
	m := w.machine(firstMachine, openGroup)
	setting(t, w.host, "ipv4/ping_group_range", "0 0")
	setting(t, m, "ipv4/ping_group_range", "0 0")
	if err := pingFrom(t, m, farAddress); err != nil {
		t.Error(err)
	}
	if err := pingFrom(t, m, farPrivate); err == nil {
		t.Error("an address that is refused answers")
	}
	if w.refusals("private-range") == 0 {
		t.Error("nothing was refused")
	}
}

// dialPing opens a ping socket in a namespace.
func dialPing(namespace *os.File, address netip.Addr) (socket *os.File, err error) {
	err = host.InNetwork(namespace, func() error {
		socket, err = pingSocket(address)
		return err
	})
	return socket, err
}

// pingFrom sends three echo requests from a namespace by a ping socket of its own, and wants each answer.
func pingFrom(t *testing.T, namespace *os.File, address string) error {
	t.Helper()
	connection, err := dialPing(namespace, netip.MustParseAddr(address))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	for i := range byte(3) {
		request := append([]byte{8, 0, 0, 0, 0, 0, 0, i}, bytes.Repeat([]byte{i}, 1000)...)
		if _, err := connection.Write(request); err != nil {
			return err
		}
		_ = connection.SetReadDeadline(time.Now().Add(2 * time.Second))
		answer := make([]byte, 2000)
		n, err := connection.Read(answer)
		if err != nil {
			return err
		}
		if n != len(request) || answer[0] != 0 || answer[7] != i || !bytes.Equal(answer[8:n], request[8:]) {
			return errors.New("the answer is another one: " + strconv.Itoa(n))
		}
	}
	return nil
}

// A connection is refused by the address that is dialled, and the host that has the address hears nothing.
func TestRefusedAddresses(t *testing.T) {
	w := newWorld(t, nat())
	heard := func(c *net.TCPConn) { t.Errorf("a connection to %s was let through", c.LocalAddr()); _ = c.Close() }
	listenIn(t, w.host, ":80", heard)
	listenIn(t, w.far, farPrivate+":80", heard)
	m := w.machine(firstMachine, openGroup)
	for address, reason := range map[string]string{
		hostAddress + ":80": "host-address", farPrivate + ":80": "private-range", "198.18.0.255:80": "reserved-range",
		"169.254.169.250:80": "reserved-range", "10.244.0.9:80": "private-range", "100.64.0.1:80": "private-range",
	} {
		before := w.refusals(reason)
		if _, err := dialIn(t, m, "tcp4", address); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v", address, err)
		}
		if w.refusals(reason) == before {
			t.Errorf("%s was not refused for being a %s", address, reason)
		}
	}
	if _, err := dialIn(t, m, "tcp4", "172.31.9.9:80"); err == nil || errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("an address of the VPC that nothing has: %v", err)
	}
}

// A change of the policy holds at once, also for connections that are open.
func TestPolicyChanges(t *testing.T) {
	w := newWorld(t, nat())
	listenIn(t, w.far, ":80", echo)
	m := w.machine(firstMachine, openGroup)
	open := nat()
	open.Allowed = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}
	w.describe(open)
	var under net.Conn
	eventually(t, "the private range is reached", func() (err error) {
		under, err = dialIn(t, m, "tcp4", farPrivate+":80")
		return err
	})
	other, err := dialIn(t, m, "tcp4", farAddress+":80")
	if err != nil {
		t.Fatal(err)
	}
	w.describe(nat())
	if _, err := under.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a connection that is not allowed any more ends with %v", err)
	}
	if got, err := roundTrip(other, []byte("still there")); err != nil || string(got) != "still there" {
		t.Errorf("another connection: %q, %v", got, err)
	}
	w.describe(egresspolicy.Policy{})
	eventually(t, "nothing leaves", func() error {
		if _, err := dialIn(t, m, "tcp4", farAddress+":80"); err == nil {
			return errors.New("it does")
		}
		return nil
	})
}

// Security groups come first: what they drop never gets here.
func TestSecurityGroupsComeFirst(t *testing.T) {
	w := newWorld(t, nat())
	listenIn(t, w.far, ":80", echo)
	m := w.machine(firstMachine, closedGroup)
	var failed net.Error
	if _, err := dialIn(t, m, "tcp4", farAddress+":80"); !errors.As(err, &failed) || !failed.Timeout() {
		t.Errorf("a machine whose groups let nothing out: %v", err)
	}
	text, err := w.ask("/metrics")
	if err != nil || strings.Contains(text, `muster_egress_flows_total{protocol="tcp"} 1`) {
		t.Errorf("something came: %v\n%s", err, text)
	}
}
