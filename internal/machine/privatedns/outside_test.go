// SPDX-License-Identifier: Apache-2.0

package privatedns

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"muster.dev/muster/internal/machine/machine"
)

// hostServer is a name server of a host's, on loopback.
func hostServer(t *testing.T, answer func(network string, query *dns.Msg) *dns.Msg) string {
	t.Helper()
	packets, listener := sockets(t)
	for network, server := range map[string]*dns.Server{"udp": {PacketConn: packets}, "tcp": {Listener: listener}} {
		server.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
			if reply := answer(network, query); reply != nil {
				_ = w.WriteMsg(reply)
			}
		})
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go func() { _ = server.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = server.Shutdown() })
	}
	return packets.LocalAddr().String()
}

func addressRecord(name, address string) dns.RR {
	rr, err := dns.NewRR(name + " 300 IN A " + address)
	if err != nil {
		panic(err)
	}
	return rr
}

// worldOf answers about one name, and about one with a large answer.
func worldOf(network string, query *dns.Msg) *dns.Msg {
	reply := new(dns.Msg).SetReply(query)
	reply.RecursionAvailable = true
	switch strings.ToLower(query.Question[0].Name) {
	case "example.com.":
		if query.Question[0].Qtype == dns.TypeA {
			reply.Answer = []dns.RR{addressRecord(query.Question[0].Name, "203.0.113.7")}
		}
	case "large.example.com.":
		if network == "udp" {
			reply.Truncated = true
			break
		}
		for i := range 100 {
			reply.Answer = append(reply.Answer, addressRecord(query.Question[0].Name, fmt.Sprintf("203.0.113.%d", i)))
		}
	default:
		reply.Rcode = dns.RcodeNameError
	}
	return reply
}

func outsideConfig(servers ...string) Config {
	return Config{
		Machines: func() ([]machine.Record, error) { return machines(), nil }, Domain: "ec2.internal",
		Services: []string{"eks.us-east-1.amazonaws.com"}, ServicesAt: netip.MustParseAddr("192.168.64.3"),
		Outside: func() ([]string, error) { return servers, nil },
	}
}

func ask(t *testing.T, server, network, name string, kind uint16, change func(*dns.Msg)) *dns.Msg {
	t.Helper()
	q := new(dns.Msg).SetQuestion(name, kind)
	if change != nil {
		change(q)
	}
	reply, _, err := (&dns.Client{Net: network, Timeout: 10 * time.Second, UDPSize: 4096}).Exchange(q, server)
	if err != nil {
		t.Fatalf("%s over %s: %v", name, network, err)
	}
	return reply
}

func TestNamesOutside(t *testing.T) {
	var asked atomic.Pointer[[]string]
	asked.Store(new([]string))
	upstream := hostServer(t, func(network string, query *dns.Msg) *dns.Msg {
		all := append([]string(nil), *asked.Load()...)
		all = append(all, strings.ToLower(query.Question[0].Name))
		asked.Store(&all)
		if len(query.IsEdns0().Option) > 0 || !query.RecursionDesired {
			t.Errorf("what left is %v", query)
		}
		return worldOf(network, query)
	})
	server := serve(t, outsideConfig(upstream))
	for query, want := range map[string]string{
		"example.com. A":                          "203.0.113.7",
		"EXAMPLE.com. A":                          "203.0.113.7",
		"example.com. AAAA":                       "",
		"nowhere.example.com. A":                  "NXDOMAIN",
		"s3.us-east-1.amazonaws.com. A":           "NXDOMAIN",
		"us-east-1.amazonaws.com. A":              "NXDOMAIN",
		"eks.us-east-1.amazonaws.com. A":          "192.168.64.3",
		"eks.us-east-1.amazonaws.com. AAAA":       "",
		"ip-192-168-64-11.ec2.internal. A":        "192.168.64.11",
		"ip-192-168-64-99.ec2.internal. A":        "NXDOMAIN",
		"ec2.internal. SOA":                       "",
		"kubernetes.default.svc.cluster.local. A": "NXDOMAIN",
		"kubernetes. A":                           "NXDOMAIN",
		"printer.local. A":                        "NXDOMAIN",
		"localhost. A":                            "NXDOMAIN",
		"9.9.168.192.in-addr.arpa. PTR":           "NXDOMAIN",
		"1.0.31.172.in-addr.arpa. PTR":            "NXDOMAIN",
		"1.0.127.100.in-addr.arpa. PTR":           "NXDOMAIN",
		"1.0.32.172.in-addr.arpa. PTR":            "NXDOMAIN", // asked outside, which does not know
		". NS":                                    "",
	} {
		name, kind, _ := strings.Cut(query, " ")
		for _, network := range []string{"udp", "tcp"} {
			reply := ask(t, server, network, name, dns.StringToType[kind], func(q *dns.Msg) {
				q.SetEdns0(4096, false)
				q.IsEdns0().Option = append(q.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"})
			})
			if got := said(reply); got != want {
				t.Errorf("%s over %s: %q, want %q", query, network, got, want)
			}
			if reply.Question[0].Name != name || !reply.RecursionAvailable {
				t.Errorf("%s over %s: %v", query, network, reply)
			}
		}
	}
	got := map[string]bool{}
	for _, name := range *asked.Load() {
		got[name] = true
	}
	want := map[string]bool{
		"example.com.": true, "nowhere.example.com.": true, "s3.us-east-1.amazonaws.com.": true, "us-east-1.amazonaws.com.": true, "1.0.32.172.in-addr.arpa.": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names that were asked outside (-want +got):\n%s", diff)
	}
}

// An answer that is too large for a client is cut, and whole over TCP.
func TestLargeAnswers(t *testing.T) {
	server := serve(t, outsideConfig(hostServer(t, worldOf)))
	for size, most := range map[uint16]int{0: dns.MinMsgSize, 600: 600, 1232: udpSize, 65535: udpSize} {
		reply := ask(t, server, "udp", "large.example.com.", dns.TypeA, func(q *dns.Msg) {
			if size > 0 {
				q.SetEdns0(size, false)
			}
		})
		reply.Compress = true // as it was on the wire
		if !reply.Truncated || reply.Len() > most {
			t.Errorf("a client that takes %d: %d bytes, truncated %t", size, reply.Len(), reply.Truncated)
		}
		if (reply.IsEdns0() != nil) != (size > 0) {
			t.Errorf("a client that takes %d: extensions are %v", size, reply.IsEdns0())
		}
	}
	if reply := ask(t, server, "tcp", "large.example.com.", dns.TypeA, nil); reply.Truncated || len(reply.Answer) != 100 {
		t.Errorf("over TCP: %d records, truncated %t", len(reply.Answer), reply.Truncated)
	}
}

// The next name server is asked if one fails; if all do, the client is told soon enough to try again.
func TestServersThatFail(t *testing.T) {
	good := hostServer(t, worldOf)
	failing := func(rcode int) string {
		return hostServer(t, func(_ string, query *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(query, rcode) })
	}
	silent := hostServer(t, func(string, *dns.Msg) *dns.Msg { return nil })
	other := hostServer(t, func(_ string, query *dns.Msg) *dns.Msg {
		reply := new(dns.Msg).SetReply(query)
		reply.Question[0].Name = "forged.example.com."
		reply.Answer = []dns.RR{addressRecord("example.com.", "198.51.100.66")}
		return reply
	})
	for what, c := range map[string]struct {
		servers []string
		want    string
	}{
		"no server":                    {nil, "NXDOMAIN"},
		"nobody listens":               {[]string{"127.0.0.1:1", good}, "203.0.113.7"},
		"one fails":                    {[]string{failing(dns.RcodeServerFailure), good}, "203.0.113.7"},
		"one refuses":                  {[]string{failing(dns.RcodeRefused), good}, "203.0.113.7"},
		"one is silent":                {[]string{silent, good}, "203.0.113.7"},
		"one answers another question": {[]string{other, good}, "203.0.113.7"},
		"all fail":                     {[]string{failing(dns.RcodeServerFailure), failing(dns.RcodeRefused)}, "REFUSED"},
		"all are silent":               {[]string{silent, silent, silent}, "SERVFAIL"},
		"only a forger":                {[]string{other}, "SERVFAIL"},
	} {
		server := serve(t, outsideConfig(c.servers...))
		begun := time.Now()
		if got := said(ask(t, server, "udp", "example.com.", dns.TypeA, nil)); got != c.want || time.Since(begun) > 5*time.Second {
			t.Errorf("%s: %q after %s, want %q", what, got, time.Since(begun), c.want)
		}
	}
}

// Whether there is a way out is looked at while the server runs, and when it cannot be found out nobody outside is
// asked.
func TestWayOutComesAndGoes(t *testing.T) {
	upstream := hostServer(t, worldOf)
	var open atomic.Bool
	var failure atomic.Pointer[error]
	config := outsideConfig()
	config.Outside = func() ([]string, error) {
		if err := failure.Load(); err != nil {
			return nil, *err
		}
		if open.Load() {
			return []string{upstream}, nil
		}
		return nil, nil
	}
	server := serve(t, config)
	becomes := func(when, want string) {
		t.Helper()
		got := ""
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
			if got = said(ask(t, server, "udp", "example.com.", dns.TypeA, nil)); got == want {
				return
			}
			<-time.After(100 * time.Millisecond)
		}
		t.Errorf("%s: %q, want %q", when, got, want)
	}
	becomes("no way out", "NXDOMAIN")
	open.Store(true)
	becomes("a way out", "203.0.113.7")
	broken := errors.New("input/output error")
	failure.Store(&broken)
	becomes("it cannot be found out", "NXDOMAIN")
}

// A machine that asks endlessly gets its share; others have theirs, however many ask endlessly.
func TestShareOfOutside(t *testing.T) {
	var o outside
	first, second := netip.MustParseAddr("192.168.64.11"), netip.MustParseAddr("192.168.64.12")
	for range maxOutsidePerMachine {
		if !o.take(first) {
			t.Fatal("a machine does not get its share")
		}
	}
	if o.take(first) {
		t.Error("a machine gets more than its share")
	}
	if !o.take(second) {
		t.Error("another machine gets nothing")
	}
	o.give(second)
	o.give(first)
	if !o.take(first) {
		t.Error("what was given back cannot be taken")
	}
	for range maxOutsidePerMachine {
		for i := range byte(100) {
			o.take(netip.AddrFrom4([4]byte{10, 0, 0, i}))
		}
	}
	if !o.take(second) || o.total > maxOutside {
		t.Errorf("with %d queries of others a machine gets nothing", o.total)
	}
	for i := range maxOutside {
		o.take(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	if o.total != maxOutside || o.take(netip.MustParseAddr("192.168.64.13")) {
		t.Errorf("%d are waited for, and one more", o.total)
	}
}

// The addresses of a machine's pods are the machine's: it may send from any of them.
func TestShareOfPods(t *testing.T) {
	hold := make(chan struct{})
	var asked atomic.Int32
	upstream := hostServer(t, func(_ string, query *dns.Msg) *dns.Msg {
		asked.Add(1)
		<-hold
		return worldOf("udp", query)
	})
	t.Cleanup(func() { close(hold) })
	config := outsideConfig(upstream)
	config.Log = slog.New(slog.DiscardHandler)
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	machineOf := func(netip.Addr) netip.Addr { return netip.MustParseAddr("192.168.64.11") }
	refused := make(chan struct{}, 4*maxOutsidePerMachine)
	for i := range maxOutsidePerMachine + 8 {
		go func() {
			r := &recorder{from: &net.UDPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i)), Port: 1}}
			server.answer(t.Context(), r, new(dns.Msg).SetQuestion("example.com.", dns.TypeA), machineOf)
			refused <- struct{}{}
		}()
	}
	for range 8 { // the others wait
		<-refused
	}
	server.outside.mutex.Lock()
	defer server.outside.mutex.Unlock()
	if server.outside.total != maxOutsidePerMachine {
		t.Errorf("%d queries of one machine are waited for, want %d", server.outside.total, maxOutsidePerMachine)
	}
}

func TestHostServers(t *testing.T) {
	for text, want := range map[string][]string{
		"":                        nil,
		"nameserver 127.0.0.53\n": {"127.0.0.53:53"},
		"# none\nsearch example.com\nnameserver 192.0.2.1\nnameserver 2001:db8::1\nnameserver fe80::1%eth0\nnameserver 192.0.2.4\n": {"192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1%eth0]:53"},
		"nameserver not-an-address\nnameserver 192.0.2.2": {"192.0.2.2:53"},
	} {
		got, err := parseServers(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	if _, err := HostServers(t.TempDir() + "/none"); err == nil {
		t.Error("a file that is not there was read")
	}
}

// What a host's resolv.conf holds never makes anything but addresses with ports.
func FuzzParseServers(f *testing.F) {
	f.Add("nameserver 192.0.2.1\noptions ndots:5 timeout:1\n")
	f.Add("nameserver fe80::1%eth0")
	f.Fuzz(func(t *testing.T, text string) {
		servers, err := parseServers(text)
		if err != nil {
			return
		}
		if len(servers) > maxServers {
			t.Errorf("%d servers", len(servers))
		}
		for _, server := range servers {
			if !strings.HasSuffix(server, ":53") {
				t.Errorf("server %q", server)
			}
		}
	})
}

// Lookup finds what a query would, for the client that is named.
func TestLookup(t *testing.T) {
	config := outsideConfig(hostServer(t, func(network string, query *dns.Msg) *dns.Msg {
		if strings.EqualFold(query.Question[0].Name, "alias.example.com.") {
			reply := new(dns.Msg).SetReply(query)
			reply.Answer = []dns.RR{&dns.CNAME{Hdr: header(query.Question[0].Name, dns.TypeCNAME, 5), Target: "example.com."}, addressRecord("example.com.", "203.0.113.7")}
			return reply
		}
		return worldOf(network, query)
	}))
	config.Log = slog.New(slog.DiscardHandler)
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	client := netip.MustParseAddr("192.168.64.4")
	for name, want := range map[string]string{
		"ip-192-168-64-11.ec2.internal": "[192.168.64.11]", "EKS.us-east-1.amazonaws.com": "[192.168.64.3]", "example.com": "[203.0.113.7]", "alias.example.com": "[203.0.113.7]",
		"nowhere.example.com": "[]", "localhost": "[]", "web.default.svc": "[]", "web.default.svc.cluster.local": "[]", "..": "[]", strings.Repeat("a", 64) + ".example.com": "[]",
	} {
		if got, err := server.Lookup(t.Context(), client, name); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v; want %s", name, got, err, want)
		}
	}
	for range maxOutsidePerMachine {
		server.outside.take(client)
	}
	if _, err := server.Lookup(t.Context(), client, "example.com"); err == nil {
		t.Error("an API server has no bound")
	}
}
