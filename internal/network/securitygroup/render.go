// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Table is the name of the table, of the family inet.
const Table = "muster-security-groups"

// Ruleset renders the state for `nft -f`: the whole table in one transaction, in place of the one that is there. The
// same state, in whichever order, gives the same text.
func Ruleset(s State) (string, error) {
	if err := s.validate(); err != nil {
		return "", fmt.Errorf("rendering security groups: %w", err)
	}
	r := renderer{state: s, groups: map[string]Group{}, links: map[string][]string{}, addresses: map[string][]string{}, ranges: map[string][]string{}}
	r.gather()
	var out text
	out.line("table inet %s", Table)
	out.line("delete table inet %s", Table)
	out.line("table inet %s {", Table)
	r.sets(&out)
	r.chains(&out)
	r.members(&out)
	r.hooks(&out)
	out.line("}")
	return out.String(), nil
}

// text is what is rendered so far.
type text struct{ strings.Builder }

func (t *text) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// chain writes one chain.
func (t *text) chain(name string, rules []string) {
	t.line("\tchain %s {", name)
	for _, rule := range rules {
		t.line("\t\t%s", rule)
	}
	t.line("\t}")
}

// renderer has the state in the order in which it is rendered.
type renderer struct {
	state  State
	groups map[string]Group
	// links and addresses are those of the members of the groups that rules name; ranges the links of machines with an
	// address in a range.
	links, addresses, ranges map[string][]string
	// lists are the different lists of groups that members have; a member's list is named by its place.
	lists []string
}

// list is the list of the groups of a member, each once. Of a group that nobody has described there are no rules.
func (r *renderer) list(m Member) string {
	var ids []string
	for _, id := range m.Groups {
		if _, ok := r.groups[id]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " ")
}

func (r *renderer) gather() {
	for _, group := range r.state.Groups {
		r.groups[group.ID] = group
	}
	for _, group := range r.state.Groups {
		for _, rule := range group.Rules {
			if rule.Group != "" {
				r.links[rule.Group], r.addresses[rule.Group] = nil, nil
			} else if own := rule.CIDR.Masked(); own.Bits() > 0 && own.Overlaps(r.state.CIDR) {
				r.ranges[own.String()] = nil
			}
		}
	}
	for _, m := range r.state.Members {
		if list := r.list(m); !slices.Contains(r.lists, list) {
			r.lists = append(r.lists, list)
		}
		for _, id := range slices.Compact(slices.Sorted(slices.Values(m.Groups))) {
			if _, named := r.links[id]; !named {
				continue
			}
			if m.Link == "" {
				r.addresses[id] = append(r.addresses[id], m.Address.String())
			} else {
				r.links[id] = append(r.links[id], quote(m.Link))
			}
		}
		for cidr, links := range r.ranges {
			if m.Link != "" && netip.MustParsePrefix(cidr).Contains(m.Address) {
				r.ranges[cidr] = append(links, quote(m.Link))
			}
		}
	}
	slices.Sort(r.lists)
}

func quote(link string) string { return `"` + link + `"` }

// sets renders the members that rules name.
func (r *renderer) sets(out *text) {
	write := func(name, kind string, elements []string) {
		out.line("\tset %s {", name)
		out.line("\t\ttype %s", kind)
		if len(elements) > 0 {
			slices.Sort(elements)
			out.line("\t\telements = { %s }", strings.Join(elements, ", "))
		}
		out.line("\t}")
	}
	for _, id := range sortedKeys(r.links) {
		write("links-"+id, "ifname", r.links[id])
		write("endpoints-"+id, "ipv4_addr", r.addresses[id])
	}
	for _, cidr := range sortedKeys(r.ranges) {
		write(rangeSet(cidr), "ifname", r.ranges[cidr])
	}
}

// rangeSet names the set of the links of machines in a range.
func rangeSet(cidr string) string { return "links-in-" + strings.ReplaceAll(cidr, "/", "-") }

// chains renders the rules of each group that has members, with the receivers' chain between those of senders and those
// of receivers.
func (r *renderer) chains(out *text) {
	used := map[string]Group{}
	for _, list := range r.lists {
		for id := range strings.FieldsSeq(list) {
			used[id] = r.groups[id]
		}
	}
	ids := sortedKeys(used)
	for _, id := range ids {
		out.chain("ingress-"+id, r.rules(used[id], Ingress, "accept"))
	}
	for i, list := range r.lists {
		rules := []string{}
		for id := range strings.FieldsSeq(list) {
			rules = append(rules, "jump ingress-"+id)
		}
		out.chain(fmt.Sprintf("to-%d", i), append(rules, "drop"))
	}
	receivers := []string{"oifname vmap @to-links", "ip daddr vmap @to-endpoints"}
	if r.state.WayOut != "" {
		receivers = append(receivers, "oifname "+quote(r.state.WayOut)+" accept")
	}
	out.chain("receivers", append(receivers, "drop"))
	for _, id := range ids {
		out.chain("egress-"+id, r.rules(used[id], Egress, "goto receivers"))
	}
	for i, list := range r.lists {
		rules := []string{}
		for id := range strings.FieldsSeq(list) {
			rules = append(rules, "jump egress-"+id)
		}
		out.chain(fmt.Sprintf("from-%d", i), append(rules, "drop"))
	}
}

// rules renders the rules of a group in one direction, each once.
func (r *renderer) rules(group Group, direction Direction, verdict string) []string {
	var rules []string
	for _, rule := range group.Rules {
		if rule.Direction != direction {
			continue
		}
		for _, peer := range r.peers(rule) {
			rules = append(rules, strings.Join(slices.DeleteFunc([]string{peer, protocol(rule), verdict}, func(s string) bool { return s == "" }), " "))
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// peers are the matches of the other side of a rule.
func (r *renderer) peers(rule Rule) []string {
	link, address := "iifname", "ip saddr"
	if rule.Direction == Egress {
		link, address = "oifname", "ip daddr"
	}
	if rule.Group != "" {
		return []string{link + " @links-" + rule.Group, address + " @endpoints-" + rule.Group}
	}
	cidr := rule.CIDR.Masked()
	if cidr.Bits() == 0 {
		return []string{""}
	}
	peers := []string{address + " " + cidr.String()}
	if _, ok := r.ranges[cidr.String()]; ok {
		peers = append(peers, link+" @"+rangeSet(cidr.String()))
	}
	return peers
}

// protocol is the match of a rule's protocol and ports.
func protocol(rule Rule) string {
	switch rule.Protocol {
	case AllProtocols:
		return ""
	case "tcp", "udp":
		switch {
		case rule.FromPort == 0 && rule.ToPort == 65535:
			return "meta l4proto " + rule.Protocol
		case rule.FromPort == rule.ToPort:
			return fmt.Sprintf("%s dport %d", rule.Protocol, rule.FromPort)
		}
		return fmt.Sprintf("%s dport %d-%d", rule.Protocol, rule.FromPort, rule.ToPort)
	case "icmp":
		switch {
		case rule.FromPort == -1:
			return "meta l4proto icmp"
		case rule.ToPort == -1:
			return fmt.Sprintf("icmp type %d", rule.FromPort)
		}
		return fmt.Sprintf("icmp type %d icmp code %d", rule.FromPort, rule.ToPort)
	}
	return "meta l4proto " + rule.Protocol
}

// members renders which rules a member's packets meet.
func (r *renderer) members(out *text) {
	elements := map[string][]string{}
	for _, m := range r.state.Members {
		i := slices.Index(r.lists, r.list(m))
		key, what := m.Address.String(), "endpoints"
		if m.Link != "" {
			key, what = quote(m.Link), "links"
		}
		elements["to-"+what] = append(elements["to-"+what], fmt.Sprintf("%s : goto to-%d", key, i))
		elements["from-"+what] = append(elements["from-"+what], fmt.Sprintf("%s : goto from-%d", key, i))
	}
	for _, m := range []struct{ name, key string }{{"to-links", "ifname"}, {"to-endpoints", "ipv4_addr"}, {"from-links", "ifname"}, {"from-endpoints", "ipv4_addr"}} {
		out.line("\tmap %s {", m.name)
		out.line("\t\ttype %s : verdict", m.key)
		if list := elements[m.name]; len(list) > 0 {
			slices.Sort(list)
			out.line("\t\telements = { %s }", strings.Join(list, ", "))
		}
		out.line("\t}")
	}
}

// known lets through what belongs to a connection that was let through.
const known = "ct state established,related accept"

// hooks renders where the kernel begins. Their policy drops what no rule lets through.
func (r *renderer) hooks(out *text) {
	services := []string{}
	if own := joined(r.state.Own); own != "" {
		services = []string{"ip daddr { " + own + " } accept"}
	}
	hook := func(name string, rules ...string) {
		out.chain(name, append([]string{"type filter hook " + name + " priority filter; policy drop;", known}, rules...))
	}
	hook("forward", "iifname vmap @from-links")
	input := []string{`iifname "lo" accept`}
	if r.state.WayOut != "" {
		input = append(input, "iifname "+quote(r.state.WayOut)+" drop")
	}
	hook("input", append(append(input, services...), "iifname vmap @from-links")...)
	// Endpoints first: from one to another, or to a load balancer, a packet stays in the namespace, and is asked about
	// like any other. And the router's own errors: of packets that it has no way for, or that are too large for one.
	output := []string{"ip saddr vmap @from-endpoints", `oifname "lo" accept`}
	if len(r.state.Routers) > 0 { // the host's SSH client, which the receiver's groups let in or not
		output = append(output, fmt.Sprintf("ip saddr { %s } tcp dport %d oifname vmap @to-links", joined(r.state.Routers), sshPort))
	}
	hook("output", append(output, "icmp type { destination-unreachable, time-exceeded, parameter-problem } accept")...)
}

// sshPort is where sshd listens on machines.
const sshPort = 22

// joined are addresses in their order, each once.
func joined(addresses []netip.Addr) string {
	all := make([]string, 0, len(addresses))
	for _, address := range addresses {
		all = append(all, address.String())
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
