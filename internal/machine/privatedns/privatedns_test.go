// SPDX-License-Identifier: Apache-2.0

package privatedns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"muster.dev/muster/internal/machine/machine"
)

// record is one as the store writes it.
func record(id, address string) machine.Record {
	ip := netip.MustParseAddr(address)
	return machine.Record{ID: id, PrivateIP: ip, PrivateDNSName: machine.PrivateDNSName(ip, "ec2.internal"), Domain: "ec2.internal", Provider: "local"}
}

const firstID, secondID = "i-0123456789abcdef0", "i-0123456789abcdef1"

func machines() []machine.Record {
	return []machine.Record{record(firstID, "192.168.64.11"), record(secondID, "192.168.64.12")}
}

// sockets are two of one port, which is free for both.
func sockets(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	var err error
	for range 20 {
		packets, failed := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
		if failed != nil {
			t.Fatal(failed)
		}
		listener, failed := new(net.ListenConfig).Listen(t.Context(), "tcp4", packets.LocalAddr().String())
		if failed == nil {
			return packets, listener
		}
		err = errors.Join(failed, packets.Close()) // something on this machine has the port
	}
	t.Fatal(err)
	return nil, nil
}

// itself is the machine of an address that no pod has.
func itself(address netip.Addr) netip.Addr { return address }

// serve runs a server on loopback until the test ends, and returns its address.
func serve(t *testing.T, config Config) string {
	t.Helper()
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	packets, listener := sockets(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, packets, listener, itself) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(tcpPatience / 2): // less than an idle connection may last
			t.Error("it goes on after its context has ended")
		}
	})
	return packets.LocalAddr().String()
}

// said is a reply as dig +short shows it, with the code if that is not NOERROR.
func said(reply *dns.Msg) string {
	if reply.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[reply.Rcode]
	}
	var texts []string
	for _, rr := range reply.Answer {
		texts = append(texts, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func TestAnswers(t *testing.T) {
	server := serve(t, Config{
		Machines: func() ([]machine.Record, error) { return machines(), nil },
		Services: []string{"eks.us-east-1.amazonaws.com", "sts.amazonaws.com"}, ServicesAt: netip.MustParseAddr("192.168.64.3"),
		Balancers: func() (map[string]netip.Addr, error) {
			return map[string]netip.Addr{"k8s-shop-web-1.elb.us-east-1.amazonaws.com": netip.MustParseAddr("192.168.64.20")}, nil
		},
	})
	for query, want := range map[string]string{
		"ip-192-168-64-11.ec2.internal. A":                        "192.168.64.11",
		"ip-192-168-64-12.ec2.internal. A":                        "192.168.64.12",
		"IP-192-168-64-11.EC2.Internal. A":                        "192.168.64.11",
		"ip-192-168-64-11.ec2.internal. ANY":                      "192.168.64.11",
		"ip-192-168-64-11.ec2.internal. AAAA":                     "", // it exists, and has none
		"i-0123456789abcdef0.ec2.internal. A":                     "192.168.64.11",
		"11.64.168.192.in-addr.arpa. PTR":                         "ip-192-168-64-11.ec2.internal.",
		"64.168.192.in-addr.arpa. PTR":                            "",
		"13.64.168.192.in-addr.arpa. PTR":                         "NXDOMAIN",
		"ip-192-168-64-13.ec2.internal. A":                        "NXDOMAIN",
		"eks.us-east-1.amazonaws.com. A":                          "192.168.64.3",
		"STS.amazonaws.com. A":                                    "192.168.64.3",
		"eks.us-east-1.amazonaws.com. AAAA":                       "",
		"K8s-shop-web-1.elb.us-east-1.amazonaws.com. A":           "192.168.64.20",
		"k8s-shop-web-2.elb.us-east-1.amazonaws.com. A":           "NXDOMAIN",
		"us-east-1.amazonaws.com. A":                              "", // names end with it
		"s3.us-east-1.amazonaws.com. A":                           "NXDOMAIN",
		"a.ip-192-168-64-11.ec2.internal. A":                      "NXDOMAIN",
		"ec2.internal. A":                                         "",
		"ec2.internal. SOA":                                       "",
		". NS":                                                    "",
		"example.com. A":                                          "NXDOMAIN",
		"kubernetes.default.svc.cluster.local. A":                 "NXDOMAIN",
		"kubernetes.default.svc.cluster.local.ec2.internal. AAAA": "NXDOMAIN",
		"ec2.internal. AXFR":                                      "REFUSED",
	} {
		name, kind, _ := strings.Cut(query, " ")
		for _, network := range []string{"udp", "tcp"} {
			q := new(dns.Msg).SetQuestion(name, dns.StringToType[kind])
			if network == "udp" {
				q.SetEdns0(4096, true)
			}
			reply, _, err := (&dns.Client{Net: network, Timeout: 10 * time.Second}).ExchangeContext(t.Context(), q, server)
			if err != nil {
				t.Errorf("%s over %s: %v", query, network, err)
				continue
			}
			if got := said(reply); got != want {
				t.Errorf("%s over %s: %q, want %q", query, network, got, want)
			}
			if reply.Question[0].Name != name {
				t.Errorf("%s over %s: the question came back as %s", query, network, reply.Question[0].Name)
			}
			for _, rr := range reply.Answer {
				if rr.Header().Name != name || rr.Header().Ttl != ttl {
					t.Errorf("%s over %s: record %s", query, network, rr)
				}
			}
			if none := len(reply.Answer) == 0 && want != "REFUSED"; none && (len(reply.Ns) != 1 || reply.Ns[0].Header().Rrtype != dns.TypeSOA) {
				t.Errorf("%s over %s: nothing says how long that is good: %v", query, network, reply.Ns)
			}
			if (reply.IsEdns0() != nil) != (network == "udp") {
				t.Errorf("%s over %s: extensions are %v", query, network, reply.IsEdns0())
			}
		}
	}
}

func TestStrangeQueries(t *testing.T) {
	server := serve(t, Config{Machines: func() ([]machine.Record, error) { return machines(), nil }})
	name := "ip-192-168-64-11.ec2.internal."
	chaos := new(dns.Msg).SetQuestion(name, dns.TypeA)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	two := new(dns.Msg).SetQuestion(name, dns.TypeA)
	two.Question = append(two.Question, two.Question[0])
	version := new(dns.Msg).SetQuestion(name, dns.TypeA)
	version.SetEdns0(512, false)
	version.IsEdns0().SetVersion(1)
	for what, c := range map[string]struct {
		query *dns.Msg
		want  int
	}{
		"another class":                {chaos, dns.RcodeRefused},
		"two questions":                {two, dns.RcodeFormatError},
		"an update":                    {new(dns.Msg).SetUpdate("ec2.internal."), dns.RcodeNotImplemented},
		"a notification":               {new(dns.Msg).SetNotify("ec2.internal."), dns.RcodeNotImplemented},
		"a later version of extension": {version, dns.RcodeBadVers},
	} {
		reply, _, err := (&dns.Client{Timeout: 10 * time.Second}).ExchangeContext(t.Context(), c.query, server)
		if err != nil || reply.Rcode != c.want || len(reply.Answer) > 0 {
			t.Errorf("%s: %v, %v", what, reply, err)
		}
	}
	// What is no query at all is not answered, and harms nobody.
	connection, err := new(net.Dialer).DialContext(t.Context(), "udp4", server)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	for _, junk := range []string{
		"", "x", strings.Repeat("\xff", 11), strings.Repeat("\xc0", 400),
		"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", // a header that promises a question, and none
	} {
		if _, err := connection.Write([]byte(junk)); err != nil {
			t.Fatal(err)
		}
	}
	if reply, err := dns.ExchangeContext(t.Context(), new(dns.Msg).SetQuestion(name, dns.TypeA), server); err != nil || said(reply) != "192.168.64.11" {
		t.Errorf("after junk: %v, %v", reply, err)
	}
}

// Connections that say nothing keep nobody from asking, and are ended.
func TestIdleConnections(t *testing.T) {
	server := serve(t, Config{Machines: func() ([]machine.Record, error) { return machines(), nil }})
	for range maxConnections + 8 {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp4", server)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
	}
	reply, err := dns.ExchangeContext(t.Context(), new(dns.Msg).SetQuestion("ip-192-168-64-11.ec2.internal.", dns.TypeA), server)
	if err != nil || said(reply) != "192.168.64.11" {
		t.Errorf("over UDP: %v, %v", reply, err)
	}
	client := &dns.Client{Net: "tcp", Timeout: 3 * tcpPatience}
	reply, _, err = client.ExchangeContext(t.Context(), new(dns.Msg).SetQuestion("ip-192-168-64-11.ec2.internal.", dns.TypeA), server)
	if err != nil || said(reply) != "192.168.64.11" {
		t.Errorf("over TCP: %v, %v", reply, err)
	}
}

// recorder is a [dns.ResponseWriter] that keeps the reply.
type recorder struct {
	dns.ResponseWriter
	from  net.Addr
	reply *dns.Msg
}

func (r *recorder) RemoteAddr() net.Addr { return r.from }

func (r *recorder) WriteMsg(m *dns.Msg) error { r.reply = m; return nil }

// The records are read once a second at most, however much is asked; what changed is known a second later; and what
// cannot be read leaves the names as they were.
func TestRecordsAreReadSeldom(t *testing.T) {
	now := time.Unix(1_000, 0)
	var reads atomic.Int32
	var known []machine.Record
	failure := errors.New("input/output error")
	server, err := NewServer(Config{
		Machines: func() ([]machine.Record, error) { reads.Add(1); return known, failure },
		Log:      slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(name string) string {
		r := &recorder{}
		server.answer(t.Context(), r, new(dns.Msg).SetQuestion(name, dns.TypeA), itself)
		return said(r.reply)
	}
	const first, second = "ip-192-168-64-11.ec2.internal.", "ip-192-168-64-12.ec2.internal."
	check := func(when string, want ...string) {
		t.Helper()
		for i := range 50 { // names of nobody make it look no oftener
			ask(fmt.Sprintf("ip-192-168-65-%d.ec2.internal.", i))
		}
		if diff := cmp.Diff(want, []string{ask(first), ask(second)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		if n := reads.Swap(0); n != 1 {
			t.Errorf("%s: the records were read %d times", when, n)
		}
		now = now.Add(readAgain)
	}
	check("nothing could be read yet", "SERVFAIL", "SERVFAIL")
	known, failure = machines()[:1], nil
	check("one machine", "192.168.64.11", "NXDOMAIN")
	known = machines()
	check("two machines", "192.168.64.11", "192.168.64.12")
	known, failure = nil, errors.New("input/output error")
	check("nothing can be read", "192.168.64.11", "192.168.64.12")
	known, failure = machines()[:1], fmt.Errorf("%w: the second one's", machine.ErrDamaged)
	check("the record of the second is damaged", "192.168.64.11", "NXDOMAIN")
	known, failure = machines()[1:], nil
	check("the first is gone", "NXDOMAIN", "192.168.64.12")
	now = now.Add(-time.Hour)
	check("the clock was set back", "NXDOMAIN", "192.168.64.12")
}
