// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"muster.dev/muster/internal/certificates/policy"
)

// A real resolver, on loopback, whose long answers need TCP.
func TestDNSOnTheWire(t *testing.T) {
	z := &zone{}
	var many []string
	for n := range 60 {
		many = append(many, fmt.Sprintf("n.example. 60 IN AAAA 2001:db8::%x", n+1))
	}
	z.set("n.example AAAA", many...)
	var tcp atomic.Int32
	handle := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		r, err := z.answer(w.RemoteAddr().Network(), q)
		if err != nil {
			return
		}
		if w.RemoteAddr().Network() == "udp" {
			r.Truncate(int(q.IsEdns0().UDPSize()))
		} else {
			tcp.Add(1)
		}
		_ = w.WriteMsg(r)
	})
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: handle}, {Listener: streams, Handler: handle}} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		done := make(chan error, 1)
		go func() { done <- server.ActivateAndServe() }()
		<-started
		t.Cleanup(func() {
			if err := errors.Join(server.Shutdown(), <-done); err != nil {
				t.Error(err)
			}
		})
	}
	e := &ear{}
	d, err := NewDNS(DNSConfig{Resolvers: []string{packets.LocalAddr().String()}, OnChange: e.hear, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	running(t, d)
	until(t, "it is known", func() bool { return knows(d, "n.example") })
	if f := d.MachineOfNode("n.example"); len(f.Value.Addresses) != 60 || tcp.Load() == 0 {
		t.Errorf("got %+v; %d answers by TCP", f, tcp.Load())
	}
	until(t, "it is absent", func() bool { return d.MachineOfNode("m.example").State == policy.Absent })
	if c := e.heard(); len(c) != 2 {
		t.Errorf("changes %+v", c)
	}
}

func TestResolvers(t *testing.T) {
	got, err := resolvers([]string{"10.0.0.2", "10.0.0.2:5353", "fd00::2", "[fd00::3]:54"})
	if want := []string{"10.0.0.2:53", "10.0.0.2:5353", "[fd00::2]:53", "[fd00::3]:54"}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range [][]string{{"ns.example"}, {"ns.example:53"}, {"10.0.0.2:0"}, {"10.0.0.2:x"}, {""}, {"10.0.0.2", "10.0.0.2:53"}, strings.Fields("1.1.1.1 1.1.1.2 1.1.1.3 1.1.1.4 1.1.1.5 1.1.1.6 1.1.1.7 1.1.1.8 1.1.1.9")} {
		if got, err := resolvers(bad); err == nil {
			t.Errorf("%v: got %v", bad, got)
		}
	}
	logger, tell := slog.New(slog.DiscardHandler), func(Change) {}
	for name, c := range map[string]DNSConfig{
		"no logger": {OnChange: tell}, "nobody to tell": {Logger: logger}, "a bad domain": {Logger: logger, OnChange: tell, Domain: "a b"},
	} {
		c.Resolvers = []string{"10.0.0.2"}
		if _, err := NewDNS(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
