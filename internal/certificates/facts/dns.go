// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"muster.dev/muster/internal/certificates/policy"
)

// DNSConfig names the resolvers and the domain to query.
type DNSConfig struct {
	Name string // of the source; "dns" if empty
	// Resolvers to ask, an address each, with or without a port. If it is empty, the resolvers of /etc/resolv.conf are
	// asked. A lookup always asks all resolvers.
	Resolvers []string
	// Domain that is put behind node names that do not end in it, "" for none.
	Domain  string
	Timeout time.Duration // of one try of one query; 2 s if 0
	Workers int           // names looked up at once; 32 if 0
	Most    int           // answers kept; 10,000 if 0
	// OnChange is called after each change. It must be quick.
	OnChange func(Change)
	Now      func() time.Time // time.Now if nil
	Logger   *slog.Logger
}

// DNS is the source "dns": the machine of a node is whatever DNS gives the node's name to.
//
// All resolvers must agree: the machine is known with the addresses that all give, absent if all say that the name does
// not exist or has no address, and unknown otherwise, as when one does not answer. Answers are kept for their time to
// live, but from 5 to 30 s: a caller that waits for an answer must be able to use it.
//
// The names of addresses (PTR) are not asked for, since they are often written by the holder of the address. So Owners
// asks nobody: it finds them among the nodes whose names were looked up and whose answers are still good, which is
// forward-confirmed. That no other node has an address is not known of nodes that nobody has asked about lately. Nor
// does a name in DNS mean that a machine is to be a node: say in the policy which names are. DNS knows names, not
// identities: a machine that took the place of another under the same name has the same ID, which is the node's name.
type DNS struct {
	config  DNSConfig
	servers []string
	answers *Answers
	trouble *trouble
	// exchange sends one query, by "udp" or "tcp".
	exchange func(ctx context.Context, network, server string, query *dns.Msg) (*dns.Msg, error)
}

var _ Source = (*DNS)(nil)

const (
	leastKept    = 5 * time.Second
	mostKept     = 30 * time.Second
	maxResolvers = 8
)

// NewDNS makes one.
func NewDNS(c DNSConfig) (*DNS, error) {
	if c.Logger == nil || c.OnChange == nil {
		return nil, errors.New("the inventory in DNS needs a logger and somebody to tell about changes")
	}
	if c.Name == "" {
		c.Name = "dns"
	}
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Second
	}
	if c.Workers <= 0 {
		c.Workers = 32
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Domain = canonicalName(strings.TrimPrefix(c.Domain, "."))
	if c.Domain != "" && !validName(c.Domain) {
		return nil, fmt.Errorf("%q is not a DNS domain", c.Domain)
	}
	servers, err := resolvers(c.Resolvers)
	if err != nil {
		return nil, err
	}
	return &DNS{
		config: c, servers: servers, exchange: exchange,
		answers: NewAnswers(AnswersConfig{Name: c.Name, Most: c.Most, OnChange: c.OnChange, Now: c.Now}),
		trouble: &trouble{now: c.Now, logger: c.Logger.With("source", c.Name)},
	}, nil
}

// resolvers completes addresses with ports.
func resolvers(given []string) ([]string, error) {
	if len(given) == 0 {
		const file = "/etc/resolv.conf"
		system, err := dns.ClientConfigFromFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the resolvers of this host: %w", err)
		}
		if len(system.Servers) == 0 {
			return nil, fmt.Errorf("%s names no resolver: name one in the policy", file)
		}
		for _, s := range system.Servers {
			given = append(given, net.JoinHostPort(s, system.Port))
		}
	}
	if len(given) > maxResolvers {
		return nil, fmt.Errorf("%d resolvers are more than %d, and each is asked about each name", len(given), maxResolvers)
	}
	var servers []string
	for _, text := range given {
		if ip, err := netip.ParseAddr(text); err == nil {
			text = net.JoinHostPort(ip.String(), "53")
		}
		if at, err := netip.ParseAddrPort(text); err != nil || at.Port() == 0 {
			return nil, fmt.Errorf("the resolver %q is not an address such as 10.0.0.2 or [fd00::2]:53", text)
		}
		if slices.Contains(servers, text) {
			return nil, fmt.Errorf("the resolver %s is given twice", text)
		}
		servers = append(servers, text)
	}
	return servers, nil
}

// Name of the source.
func (d *DNS) Name() string { return d.config.Name }

// Run looks up what is asked for until ctx is done.
func (d *DNS) Run(ctx context.Context) {
	var group sync.WaitGroup
	for range d.config.Workers {
		group.Go(func() {
			for d.answers.Wait(ctx) {
				for _, s := range d.answers.Take(1) {
					if f, keep := d.lookUp(ctx, s.Node); ctx.Err() == nil {
						d.answers.Put(answerOf(s, f, keep))
					}
				}
			}
		})
	}
	group.Wait()
}

// HasSynced is always true: everything can be asked at any time.
func (d *DNS) HasSynced() bool { return true }

// Status reports whether resolvers answered last.
func (d *DNS) Status() SourceStatus {
	s := SourceStatus{Name: d.config.Name, Synced: true}
	s.Age, s.Problem = d.trouble.status()
	return s
}

// Machine finds a machine by the name of its node, which is its ID here.
func (d *DNS) Machine(id string) policy.Fact[policy.Machine] { return d.MachineOfNode(id) }

// MachineOfNode finds the machine by what DNS says about the node's name.
func (d *DNS) MachineOfNode(node string) policy.Fact[policy.Machine] {
	if !validName(node) || !validName(d.host(node)) {
		return policy.None[policy.Machine](d.config.Name, d.config.Now()) // no host can have that name
	}
	return d.answers.Get(Subject{Node: node})
}

// Owners finds the machines of the nodes that were asked about lately.
func (d *DNS) Owners(name string) policy.Fact[[]policy.Machine] { return d.answers.Seen(name) }

// host is the name that is looked up for a node.
func (d *DNS) host(node string) string {
	if d.config.Domain == "" || node == d.config.Domain || strings.HasSuffix(node, "."+d.config.Domain) {
		return node
	}
	return node + "." + d.config.Domain
}

// lookUp asks all resolvers, and tells what they agree on.
func (d *DNS) lookUp(ctx context.Context, node string) (f policy.Fact[policy.Machine], keep time.Duration) {
	at, host := d.config.Now(), d.host(node)
	replies := make([]reply, len(d.servers))
	var group sync.WaitGroup
	for i, server := range d.servers {
		group.Go(func() { replies[i] = d.resolve(ctx, server, host) })
	}
	group.Wait()
	silent := slices.ContainsFunc(replies, func(r reply) bool { return r.err != nil })
	if disagree := slices.ContainsFunc(replies, func(r reply) bool { return !slices.Equal(r.addresses, replies[0].addresses) }); silent || disagree {
		why := fmt.Sprintf("the resolvers do not agree about %s: ", host)
		if silent {
			why = fmt.Sprintf("not all resolvers answered about %s: ", host)
		}
		for i, r := range replies {
			if i > 0 {
				why += "; "
			}
			why += d.servers[i] + " " + r.String()
		}
		if silent {
			d.trouble.report(errors.New(why))
		}
		return policy.DontKnow[policy.Machine](d.config.Name, why), leastKept
	}
	d.trouble.report(nil)
	keep = mostKept
	for _, r := range replies {
		keep = min(keep, r.ttl)
	}
	keep = max(keep, leastKept)
	if len(replies[0].addresses) == 0 {
		return policy.None[policy.Machine](d.config.Name, at), keep
	}
	m := policy.Machine{ID: node, NodeName: node, Names: []string{node}, Addresses: replies[0].addresses}
	if host != node {
		m.Names = append(m.Names, host)
	}
	return policy.Know(m, d.config.Name, at), keep
}
