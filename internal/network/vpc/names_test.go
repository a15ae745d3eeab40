// SPDX-License-Identifier: Apache-2.0

// This test makes network namespaces, which needs root.

package vpc

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/miekg/dns"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/privatedns"
	"muster.dev/muster/internal/platform/host"
)

// resolve asks the VPC's name server from a namespace for the address of a name.
func resolve(t *testing.T, namespace *os.File, at netip.Addr, network, name string) *dns.Msg {
	t.Helper()
	var connection net.Conn
	err := host.InNetwork(namespace, func() (err error) {
		dialer := net.Dialer{Timeout: 10 * time.Second, FallbackDelay: -1}
		connection, err = dialer.DialContext(t.Context(), network, netip.AddrPortFrom(at, 53).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(generous)); err != nil {
		t.Fatal(err)
	}
	session := &dns.Conn{Conn: connection}
	if err := session.WriteMsg(new(dns.Msg).SetQuestion(name, dns.TypeA)); err != nil {
		t.Fatal(err)
	}
	reply, err := session.ReadMsg()
	if err != nil {
		t.Fatalf("%s over %s: %v", name, network, err)
	}
	return reply
}

// Machines resolve each other's names at the second address of the VPC and at the link-local one, also after the relay
// was started again.
func TestNames(t *testing.T) {
	n := newNetwork(t)
	first, second := newMachine(t, n, "192.168.64.11"), newMachine(t, n, "192.168.64.12")
	address := netip.MustParseAddr("192.168.64.12")
	records := []machine.Record{{ID: "i-0123456789abcdef0", PrivateIP: address, PrivateDNSName: machine.PrivateDNSName(address, "ec2.internal"), Domain: "ec2.internal"}}
	names, err := privatedns.NewServer(privatedns.Config{
		Machines: func() ([]machine.Record, error) { return records, nil }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	config := relayConfig(t, n)
	config.Names = names
	for range 2 {
		stop := runRelay(t, config)
		for _, from := range []*os.File{first, second} {
			for _, at := range []netip.Addr{Resolver(cidr), LinkLocalResolver()} {
				for _, network := range []string{"udp4", "tcp4"} {
					if reply := resolve(t, from, at, network, "ip-192-168-64-12.ec2.internal."); len(reply.Answer) != 1 || reply.Answer[0].(*dns.A).A.String() != "192.168.64.12" {
						t.Errorf("at %s over %s: %v", at, network, reply)
					}
					if reply := resolve(t, from, at, network, "example.com."); reply.Rcode != dns.RcodeNameError {
						t.Errorf("at %s over %s: %v", at, network, reply)
					}
				}
			}
		}
		stop()
	}
}
