// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// packet is the first one of a connection between two members. Of icmp, port is the type.
type packet struct {
	from, to            Member
	source, destination netip.Addr
	protocol            string
	port, code          int32
}

// allowed says by the rules themselves whether a packet is let through.
func allowed(state State, p packet) bool {
	side := func(direction Direction, own, peer Member, address netip.Addr) bool {
		for _, group := range state.Groups {
			if !slices.Contains(own.Groups, group.ID) {
				continue
			}
			for _, rule := range group.Rules {
				is := rule.Group != "" && slices.Contains(peer.Groups, rule.Group) ||
					rule.CIDR.IsValid() && (rule.CIDR.Contains(address) || rule.CIDR.Contains(peer.Address))
				if rule.Direction == direction && is && meant(rule, p) {
					return true
				}
			}
		}
		return false
	}
	return side(Egress, p.from, p.to, p.destination) && side(Ingress, p.to, p.from, p.source)
}

func meant(rule Rule, p packet) bool {
	switch {
	case rule.Protocol == AllProtocols:
		return true
	case rule.Protocol != p.protocol:
		return false
	case p.protocol == "icmp":
		return rule.FromPort == -1 || rule.FromPort == p.port && (rule.ToPort == -1 || rule.ToPort == p.code)
	case p.protocol == "tcp" || p.protocol == "udp":
		return rule.FromPort <= p.port && p.port <= rule.ToPort
	}
	return true
}

// states are small states with much in common between their parts.
func states() *rapid.Generator[State] {
	return rapid.Custom(func(t *rapid.T) State {
		ids := []string{web, data, nobodys}
		state := State{CIDR: network, Own: services}
		for _, id := range ids[:rapid.IntRange(0, 3).Draw(t, "groups")] {
			group := Group{ID: id}
			for range rapid.IntRange(0, 4).Draw(t, "rules") {
				rule := Rule{Direction: rapid.SampledFrom([]Direction{Ingress, Egress}).Draw(t, "direction"), Protocol: rapid.SampledFrom([]string{"tcp", "udp", "icmp", "50", AllProtocols}).Draw(t, "protocol")}
				switch rule.Protocol {
				case "tcp", "udp":
					ports := rapid.SampledFrom([][2]int32{{0, 65535}, {80, 80}, {80, 90}, {443, 443}, {22, 22}, {20, 25}}).Draw(t, "ports")
					rule.FromPort, rule.ToPort = ports[0], ports[1]
				case "icmp":
					kinds := rapid.SampledFrom([][2]int32{{-1, -1}, {8, -1}, {3, 4}}).Draw(t, "types")
					rule.FromPort, rule.ToPort = kinds[0], kinds[1]
				}
				if rapid.Bool().Draw(t, "by group") {
					rule.Group = rapid.SampledFrom(ids).Draw(t, "peer")
				} else {
					rule.CIDR = prefix(rapid.SampledFrom([]string{"0.0.0.0/0", "10.0.0.0/16", "10.0.16.0/20", "10.0.16.5/32", "10.244.0.0/16", "10.244.1.0/24", "10.0.16.9/20"}).Draw(t, "range"))
				}
				group.Rules = append(group.Rules, rule)
			}
			state.Groups = append(state.Groups, group)
		}
		for i, address := range []string{"10.0.0.7", "10.0.16.5", "10.0.16.6", "10.0.0.9", "10.0.16.9"} {
			m := Member{Address: netip.MustParseAddr(address)}
			if i < 3 {
				m.Link = fmt.Sprintf("vm-%d", i)
			}
			for _, id := range ids {
				if rapid.Bool().Draw(t, "is in "+id) {
					m.Groups = append(m.Groups, id)
				}
			}
			state.Members = append(state.Members, m)
		}
		return state
	})
}

// table is a ruleset as it was read again, and run as the kernel runs it.
type table struct {
	t        rapid.TB
	chains   map[string][]string
	elements map[string]map[string]string // of sets and maps
}

func readTable(t rapid.TB, ruleset string) *table {
	read := &table{t: t, chains: map[string][]string{}, elements: map[string]map[string]string{}}
	name := ""
	for line := range strings.Lines(ruleset) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case line == "}" || strings.HasPrefix(line, "table ") || strings.HasPrefix(line, "delete ") || strings.HasPrefix(line, "type "):
		case words[len(words)-1] == "{":
			name = words[1]
			if words[0] == "chain" {
				read.chains[name] = []string{}
			} else {
				read.elements[name] = map[string]string{}
			}
		case strings.HasPrefix(line, "elements"):
			for element := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(line, "elements = { "), " }"), ", ") {
				key, verdict, _ := strings.Cut(element, " : ")
				read.elements[name][key] = verdict
			}
		default:
			read.chains[name] = append(read.chains[name], line)
		}
	}
	return read
}

func (r *table) accepts(p packet) bool {
	hook := "forward"
	switch {
	case p.from.Link == "": // to another endpoint, too: what comes to it by lo is let in
		hook = "output"
	case p.to.Link == "":
		hook = "input"
	}
	return r.run(hook, p) == "accept"
}

// run returns the verdict of a chain, or "" at its end.
func (r *table) run(chain string, p packet) string {
	rules, ok := r.chains[chain]
	if !ok {
		r.t.Fatalf("there is no chain %s", chain)
	}
	for _, rule := range rules {
		verdict := r.rule(strings.Fields(rule), p)
		action, target, _ := strings.Cut(verdict, " ")
		switch action {
		case "accept", "drop":
			return action
		case "jump":
			if verdict := r.run(target, p); verdict != "" {
				return verdict
			}
		case "goto":
			return r.run(target, p)
		}
	}
	return ""
}

// rule returns the verdict of one rule, or "" if it does not match.
func (r *table) rule(words []string, p packet) string {
	value := map[string]string{"ip saddr": p.source.String(), "ip daddr": p.destination.String(), "iifname": quote(p.from.Link), "oifname": quote(p.to.Link), "meta l4proto": p.protocol}
	if p.from.Link == "" {
		delete(value, "iifname")
	}
	if p.to.Link == "" {
		delete(value, "oifname")
		if p.from.Link == "" {
			value["oifname"] = quote("lo")
		}
	}
	for len(words) > 0 {
		if words[0] == "accept" || words[0] == "drop" || words[0] == "jump" || words[0] == "goto" {
			return strings.Join(words, " ")
		}
		if words[0] == "type" || words[0] == "ct" { // the hook itself, and what is known
			return ""
		}
		key := words[0]
		if key != "iifname" && key != "oifname" {
			key += " " + words[1]
		}
		words = words[len(strings.Fields(key)):]
		is, has := value[key]
		what := words[0]
		words = words[1:]
		switch {
		case what == "vmap":
			return r.elements[strings.TrimPrefix(words[0], "@")][is]
		case strings.HasPrefix(what, "@"):
			if _, in := r.elements[what[1:]][is]; !in || !has {
				return ""
			}
		case what == "{":
			end := slices.Index(words, "}")
			if !slices.Contains(strings.FieldsFunc(strings.Join(words[:end], ""), func(c rune) bool { return c == ',' }), is) {
				return ""
			}
			words = words[end+1:]
		case !r.matches(key, what, is, p):
			return ""
		}
	}
	return ""
}

func (r *table) matches(key, what, is string, p packet) bool {
	switch key {
	case "ip saddr", "ip daddr":
		return prefix(what).Contains(netip.MustParseAddr(is))
	case "tcp dport", "udp dport":
		var from, to int32
		if n, _ := fmt.Sscanf(what, "%d-%d", &from, &to); n == 1 {
			to = from
		}
		return p.protocol == key[:3] && from <= p.port && p.port <= to
	case "icmp type":
		return p.protocol == "icmp" && what == fmt.Sprint(p.port)
	case "icmp code":
		return p.protocol == "icmp" && what == fmt.Sprint(p.code)
	}
	return is == what
}
