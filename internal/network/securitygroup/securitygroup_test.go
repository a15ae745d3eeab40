// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"flag"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	web     = "sg-0000000000000000a"
	data    = "sg-0000000000000000b"
	nobodys = "sg-0000000000000000c"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func member(link, address string, groups ...string) Member {
	return Member{Link: link, Address: netip.MustParseAddr(address), Groups: groups}
}

var (
	anywhere = prefix("0.0.0.0/0")
	network  = prefix("10.0.0.0/16")
	services = []netip.Addr{netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("10.0.0.2")}
)

// everything has each kind of rule, and each kind of member.
func everything() State {
	return State{
		CIDR: network, Own: services, WayOut: "egress",
		Groups: []Group{
			{ID: web, Rules: []Rule{
				{Direction: Ingress, Protocol: "tcp", FromPort: 443, ToPort: 443, CIDR: anywhere},
				{Direction: Ingress, Protocol: "tcp", FromPort: 8000, ToPort: 8999, CIDR: prefix("10.0.16.0/20")},
				{Direction: Ingress, Protocol: "udp", FromPort: 0, ToPort: 65535, CIDR: prefix("192.168.0.0/24")},
				{Direction: Ingress, Protocol: "icmp", FromPort: 8, ToPort: -1, Group: data},
				{Direction: Ingress, Protocol: "icmp", FromPort: 3, ToPort: 4, Group: web},
				{Direction: Ingress, Protocol: "icmp", FromPort: -1, ToPort: -1, CIDR: prefix("10.0.0.7/32")},
				{Direction: Ingress, Protocol: "50", Group: nobodys},
				{Direction: Egress, Protocol: AllProtocols, CIDR: anywhere},
			}},
			{ID: data, Rules: []Rule{
				{Direction: Ingress, Protocol: "tcp", FromPort: 5432, ToPort: 5432, Group: web},
				{Direction: Ingress, Protocol: AllProtocols, Group: data},
				{Direction: Egress, Protocol: "tcp", FromPort: 443, ToPort: 443, Group: web},
				{Direction: Egress, Protocol: "udp", FromPort: 53, ToPort: 53, CIDR: network},
			}},
		},
		Members: []Member{
			member("vm-0a000007", "10.0.0.7", web), member("vm-0a001005", "10.0.16.5", data, web), member("vm-0a001006", "10.0.16.6", web, data),
			member("vm-0a001007", "10.0.16.7"), member("vm-0a001008", "10.0.16.8", "sg-0000000000000000f"),
			member("", "10.0.0.9", data), member("", "10.0.16.9", data),
		},
	}
}

func TestRuleset(t *testing.T) {
	for name, state := range map[string]State{
		"everything": everything(),
		"nothing":    {CIDR: network, Own: services},
		"cluster": {
			CIDR: network, Own: services, Routers: []netip.Addr{netip.MustParseAddr("10.0.16.1"), netip.MustParseAddr("10.0.0.1")},
			Groups: []Group{{ID: web, Rules: []Rule{
				{Direction: Ingress, Protocol: AllProtocols, Group: web}, {Direction: Egress, Protocol: AllProtocols, CIDR: anywhere},
			}}},
			Members: []Member{member("vm-0a000007", "10.0.0.7", web), member("vm-0a000008", "10.0.0.8", web), member("", "10.0.0.9", web)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Ruleset(state)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".nft")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	rule := func(change func(*Rule)) State {
		r := Rule{Direction: Ingress, Protocol: "tcp", FromPort: 1, ToPort: 2, CIDR: anywhere}
		change(&r)
		return State{CIDR: network, Groups: []Group{{ID: web, Rules: []Rule{r}}}}
	}
	members := func(m ...Member) State { return State{CIDR: network, Members: m} }
	for name, c := range map[string]struct {
		state State
		want  string
	}{
		"no range":             {State{}, "the range of the VPC"},
		"a group's id":         {State{CIDR: network, Groups: []Group{{ID: "sg-1; drop"}}}, "invalid security group id"},
		"a group twice":        {State{CIDR: network, Groups: []Group{{ID: web}, {ID: web}}}, "is there twice"},
		"no direction":         {rule(func(r *Rule) { r.Direction = "" }), "is neither"},
		"no peer":              {rule(func(r *Rule) { r.CIDR = netip.Prefix{} }), "one of a range and a group"},
		"two peers":            {rule(func(r *Rule) { r.Group = web }), "one of a range and a group"},
		"a bad peer":           {rule(func(r *Rule) { r.CIDR, r.Group = netip.Prefix{}, "web" }), "invalid security group id"},
		"IPv6":                 {rule(func(r *Rule) { r.CIDR = prefix("::/0") }), "is not a range of IPv4"},
		"ports the wrong way":  {rule(func(r *Rule) { r.FromPort = 3 }), "ports 3 to 2"},
		"a port too large":     {rule(func(r *Rule) { r.ToPort = 65536 }), "to 65536"},
		"a negative port":      {rule(func(r *Rule) { r.FromPort = -1 }), "ports -1 to 2"},
		"a type too large":     {rule(func(r *Rule) { r.Protocol, r.FromPort = "icmp", 256 }), "icmp type 256"},
		"a code without type":  {rule(func(r *Rule) { r.Protocol, r.FromPort, r.ToPort = "icmp", -1, 0 }), "needs a type"},
		"a protocol by name":   {rule(func(r *Rule) { r.Protocol = "gre" }), `protocol "gre"`},
		"a protocol too large": {rule(func(r *Rule) { r.Protocol = "256" }), `protocol "256"`},
		"a hostile protocol":   {rule(func(r *Rule) { r.Protocol = "6 accept" }), `protocol "6 accept"`},
		"a hostile link":       {members(member(`x" : accept`, "10.0.0.7")), "invalid link"},
		"a link twice":         {members(member("a", "10.0.0.7"), member("a", "10.0.0.8")), "is there twice"},
		"an address twice":     {members(member("a", "10.0.0.7"), member("", "10.0.0.7")), "is there twice"},
		"a member's address":   {members(Member{Link: "a"}), "is not one of IPv4"},
		"a member's group":     {members(member("a", "10.0.0.7", "web")), "invalid security group id"},
		"a way out":            {State{CIDR: network, WayOut: `x" accept`}, "invalid link"},
		"a router's address":   {State{CIDR: network, Routers: []netip.Addr{{}}}, "is not one of IPv4"},
		"an own address":       {State{CIDR: network, Own: []netip.Addr{{}}}, "is not one of IPv4"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Ruleset(c.state)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q\n%s", err, c.want, got)
			}
		})
	}
}

// The order of what a state has, and what it has twice, changes nothing: a ruleset is put in force only when it
// differs.
func TestOrderIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := states().Draw(t, "state")
		want, err := Ruleset(state)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		other := State{CIDR: state.CIDR, Own: slices.Clone(state.Own), Groups: slices.Clone(state.Groups), Members: slices.Clone(state.Members)}
		random.Shuffle(len(other.Own), func(i, j int) { other.Own[i], other.Own[j] = other.Own[j], other.Own[i] })
		random.Shuffle(len(other.Groups), func(i, j int) { other.Groups[i], other.Groups[j] = other.Groups[j], other.Groups[i] })
		random.Shuffle(len(other.Members), func(i, j int) { other.Members[i], other.Members[j] = other.Members[j], other.Members[i] })
		for i, group := range other.Groups {
			rules := append(slices.Clone(group.Rules), group.Rules...)
			random.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
			other.Groups[i].Rules = rules
		}
		for i, m := range other.Members {
			groups := append(slices.Clone(m.Groups), m.Groups...)
			slices.Reverse(groups)
			other.Members[i].Groups = groups
		}
		got, err := Ruleset(other)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("another order gives another ruleset:\n%s", diff)
		}
	})
}

// A packet of a router, as of the host's SSH client, gets to port 22 of a machine exactly if its groups let it in, and
// nowhere else.
func TestRulesetLetsInSSH(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := states().Draw(t, "state")
		state.Routers = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.16.1")}
		ruleset, err := Ruleset(state)
		if err != nil {
			t.Fatal(err)
		}
		read := readTable(t, ruleset)
		for range 20 {
			router, to := rapid.SampledFrom(state.Routers).Draw(t, "router"), rapid.SampledFrom(state.Members).Draw(t, "to")
			p := packet{source: router, destination: to.Address, to: to, protocol: rapid.SampledFrom([]string{"tcp", "udp"}).Draw(t, "protocol"), port: rapid.SampledFrom([]int32{22, 80, 2222}).Draw(t, "port")}
			p.from.Address = router
			if to.Link == "" { // an endpoint is the namespace's own, as the router is
				continue
			}
			want := p.protocol == "tcp" && p.port == 22 && LetsInSSH(state.Groups, to.Groups, router)
			if got := read.accepts(p); got != want {
				t.Fatalf("%+v: %t, want %t\n%s", p, got, want, ruleset)
			}
		}
	})
}

// The rendered ruleset lets a first packet through exactly if the sender's groups and the receiver's say so.
func TestRulesetMeansTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := states().Draw(t, "state")
		ruleset, err := Ruleset(state)
		if err != nil {
			t.Fatal(err)
		}
		machine := readTable(t, ruleset)
		if len(state.Members) < 2 {
			return
		}
		for range 20 {
			from := rapid.SampledFrom(state.Members).Draw(t, "from")
			to := rapid.SampledFrom(state.Members).Draw(t, "to")
			if from.Address == to.Address {
				continue
			}
			p := packet{from: from, to: to, source: from.Address, destination: to.Address}
			if from.Link != "" && rapid.Bool().Draw(t, "of a pod") {
				p.source = netip.MustParseAddr("10.244.1.7")
			}
			if to.Link != "" && rapid.Bool().Draw(t, "to a pod") {
				p.destination = netip.MustParseAddr("10.244.2.7")
			}
			p.protocol = rapid.SampledFrom([]string{"tcp", "udp", "icmp", "50"}).Draw(t, "protocol")
			p.port = int32(rapid.SampledFrom([]int{0, 3, 8, 79, 80, 81, 90, 443}).Draw(t, "port"))
			p.code = int32(rapid.SampledFrom([]int{0, 4}).Draw(t, "code"))
			want := allowed(state, p)
			if got := machine.accepts(p); got != want {
				t.Fatalf("%+v: accepted %v, want %v\n%s", p, got, want, ruleset)
			}
		}
	})
}
