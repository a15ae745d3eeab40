// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
)

func TestDNSName(t *testing.T) {
	name := DNSName("muster", "kube-system", "my-web-frontend", "6d1a0f60", "us-east-1")
	if !regexp.MustCompile(`^k8s-kubesyst-mywebfro-[0-9a-f]{10}-[0-9a-f]{16}\.elb\.us-east-1\.amazonaws\.com$`).MatchString(name) {
		t.Error(name)
	}
	if again := DNSName("muster", "kube-system", "my-web-frontend", "6d1a0f60", "us-east-1"); again != name {
		t.Errorf("%s, then %s", name, again)
	}
	for _, other := range []string{DNSName("blue", "kube-system", "my-web-frontend", "6d1a0f60", "us-east-1"), DNSName("muster", "kube-system", "my-web-frontend", "6d1a0f61", "us-east-1")} {
		if other == name {
			t.Errorf("two balancers are called %s", name)
		}
	}
	long := DNSName("c", strings.Repeat("n", 63), strings.Repeat("s", 63), "u", "ap-southeast-3")
	if label, _, _ := strings.Cut(long, "."); len(label) > 63 {
		t.Errorf("a label of %d characters: %s", len(label), long)
	}
}

func TestValidate(t *testing.T) {
	good := func() Balancer {
		return Balancer{
			Cluster: "muster", Namespace: "shop", Service: "web", UID: "1", DNSName: "a.example", Address: netip.MustParseAddr("172.31.0.9"),
			HostAddress: netip.MustParseAddr("127.130.1.2"), Spec: Spec{Listeners: []Listener{{Protocol: TCP, Port: 80, Targets: []Target{{Address: netip.MustParseAddrPort("10.244.0.5:8080")}}}}},
		}
	}
	for name, change := range map[string]func(*Balancer){
		"on the host's loopback":             func(*Balancer) {},
		"of another range":                   func(b *Balancer) { b.HostAddress = netip.MustParseAddr("198.51.100.7") },
		"internal, without one on the host":  func(b *Balancer) { b.Internal, b.HostAddress = true, netip.Addr{} },
		"internal, with what it had before":  func(b *Balancer) { b.Internal = true },
		"listens nowhere, and never has yet": func(b *Balancer) { b.Listeners, b.HostAddress = nil, netip.Addr{} },
	} {
		b := good()
		change(&b)
		if err := b.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		change func(*Balancer)
		want   string
	}{
		"nobody's":            {func(b *Balancer) { b.UID = "" }, "whose it is"},
		"without a name":      {func(b *Balancer) { b.DNSName = "" }, "no DNS name"},
		"without an address":  {func(b *Balancer) { b.Address = netip.Addr{} }, "in the VPC"},
		"everybody's":         {func(b *Balancer) { b.HostAddress = netip.MustParseAddr("127.0.0.1") }, "127.0.0.0/16"},
		"all of the host":     {func(b *Balancer) { b.HostAddress = netip.MustParseAddr("0.0.0.0") }, "0.0.0.0/8"},
		"multicast":           {func(b *Balancer) { b.HostAddress = netip.MustParseAddr("224.0.0.5") }, "multicast"},
		"of IPv6":             {func(b *Balancer) { b.HostAddress = netip.MustParseAddr("::1") }, "not one of IPv4"},
		"nowhere on the host": {func(b *Balancer) { b.HostAddress = netip.Addr{} }, "not one of IPv4"},
		"a port of SCTP":      {func(b *Balancer) { b.Listeners[0].Protocol = "SCTP" }, "80/SCTP"},
		"port 0":              {func(b *Balancer) { b.Listeners[0].Port = 0 }, "invalid listener"},
		"a port twice":        {func(b *Balancer) { b.Listeners = append(b.Listeners, b.Listeners[0]) }, "twice"},
		"a check":             {func(b *Balancer) { b.Listeners[0].Check.Protocol = "ICMP" }, "ICMP"},
		"a target":            {func(b *Balancer) { b.Listeners[0].Targets[0].Address = netip.MustParseAddrPort("[::1]:80") }, "invalid target"},
		"a target's port":     {func(b *Balancer) { b.Listeners[0].Targets[0].Address = netip.MustParseAddrPort("10.0.0.1:0") }, "invalid target"},
		"many ports":          {func(b *Balancer) { b.Listeners = make([]Listener, 51) }, "51 listeners"},
		"a negative time":     {func(b *Balancer) { b.IdleSeconds = -1 }, "below 0"},
	} {
		b := good()
		c.change(&b)
		if err := b.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
