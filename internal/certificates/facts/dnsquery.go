// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// reply is what one resolver says about a name: addresses, none, or nothing that can be believed.
type reply struct {
	addresses []netip.Addr // sorted
	ttl       time.Duration
	err       error
}

func (r reply) String() string {
	switch {
	case r.err != nil:
		return "fails: " + r.err.Error()
	case len(r.addresses) == 0:
		return "says that it does not exist"
	}
	texts := make([]string, len(r.addresses))
	for i, a := range r.addresses {
		texts[i] = a.String()
	}
	return "says " + strings.Join(texts, ", ")
}

const (
	udpSize        = 1232 // the size that passes everywhere without fragments (DNS Flag Day 2020)
	maxAliases     = 8
	maxOfHost      = 64 // addresses
	noAnswerIsGood = 10 * time.Second
)

// resolve asks one resolver for both kinds of addresses. If the question about one kind fails, the whole reply is a
// failure.
func (d *DNS) resolve(ctx context.Context, server, host string) reply {
	kinds := []uint16{dns.TypeA, dns.TypeAAAA}
	parts := make([]reply, len(kinds))
	var group sync.WaitGroup
	for i, kind := range kinds {
		group.Go(func() { parts[i] = d.query(ctx, server, host, kind) })
	}
	group.Wait()
	all := reply{ttl: mostKept}
	for _, p := range parts {
		if p.err != nil {
			return p
		}
		all.addresses = append(all.addresses, p.addresses...)
	}
	for _, p := range parts {
		// That there are none of one kind is said by most names, and does not make the rest old.
		if len(p.addresses) > 0 || len(all.addresses) == 0 {
			all.ttl = min(all.ttl, p.ttl)
		}
	}
	slices.SortFunc(all.addresses, netip.Addr.Compare)
	all.addresses = slices.Compact(all.addresses)
	if len(all.addresses) > maxOfHost {
		return reply{err: fmt.Errorf("it has %d addresses, more than %d", len(all.addresses), maxOfHost)}
	}
	return all
}

// query asks for one kind, and once more, without extensions, if that fails: a packet may be lost, and a resolver very
// old.
func (d *DNS) query(ctx context.Context, server, host string, kind uint16) (r reply) {
	for try := range 2 {
		q := new(dns.Msg).SetQuestion(dns.Fqdn(host), kind)
		if try == 0 {
			q.SetEdns0(udpSize, false)
		}
		if r = d.try(ctx, server, q); r.err == nil || ctx.Err() != nil {
			break
		}
	}
	return r
}

func (d *DNS) try(ctx context.Context, server string, q *dns.Msg) reply {
	ctx, cancel := context.WithTimeout(ctx, d.config.Timeout)
	defer cancel()
	for _, network := range []string{"udp", "tcp"} {
		r, err := d.exchange(ctx, network, server, q)
		if err == nil {
			err = matches(q, r)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return reply{err: fmt.Errorf("no answer within %s", d.config.Timeout)}
		case err != nil:
			return reply{err: err}
		case !r.Truncated:
			return read(q, r)
		}
	}
	return reply{err: errors.New("the answer is too long")}
}

// exchange opens a socket for each query, so that its port is as hard to guess as its number.
func exchange(ctx context.Context, network, server string, q *dns.Msg) (*dns.Msg, error) {
	client := dns.Client{Net: network}
	if deadline, ok := ctx.Deadline(); ok {
		client.Timeout = time.Until(deadline) // which is 2 s otherwise
	}
	r, _, err := client.ExchangeContext(ctx, q, server)
	return r, err
}

// matches reports whether a message answers a query.
func matches(q, r *dns.Msg) error {
	if r == nil || r.Id != q.Id || !r.Response || r.Opcode != dns.OpcodeQuery || len(r.Question) != 1 {
		return errors.New("it answers something else")
	}
	asked, answered := q.Question[0], r.Question[0]
	if !strings.EqualFold(asked.Name, answered.Name) || asked.Qtype != answered.Qtype || asked.Qclass != answered.Qclass {
		return fmt.Errorf("it answers about %s", answered.Name)
	}
	return nil
}

// read reads the addresses of the name that was asked for, or of what it is an alias of. Everything else is left out.
func read(q, r *dns.Msg) reply {
	if r.Rcode != dns.RcodeSuccess && r.Rcode != dns.RcodeNameError {
		return reply{err: fmt.Errorf("it answers %s", dns.RcodeToString[r.Rcode])}
	}
	out := reply{ttl: mostKept}
	note := func(h *dns.RR_Header) { out.ttl = min(out.ttl, time.Duration(h.Ttl)*time.Second) }
	name := q.Question[0].Name
	for range maxAliases {
		alias := ""
		for _, rr := range r.Answer {
			if h := rr.Header(); !strings.EqualFold(h.Name, name) || h.Class != dns.ClassINET {
				continue
			}
			var ip netip.Addr
			switch rr := rr.(type) {
			case *dns.A:
				ip, _ = netip.AddrFromSlice(rr.A)
			case *dns.AAAA:
				ip, _ = netip.AddrFromSlice(rr.AAAA)
			case *dns.CNAME:
				alias = rr.Target
				note(rr.Header())
			}
			if ip.IsValid() && rr.Header().Rrtype == q.Question[0].Qtype {
				out.addresses = append(out.addresses, ip.Unmap())
				note(rr.Header())
			}
		}
		if alias == "" {
			break
		}
		name = alias
	}
	switch {
	case len(out.addresses) == 0:
		return none(r)
	case r.Rcode == dns.RcodeNameError:
		return reply{err: errors.New("it gives addresses to a name that does not exist")}
	}
	return out
}

// none is the reply of a resolver that has no address. How long that is good stands in the zone's SOA (RFC 2308,
// section 5).
func none(r *dns.Msg) reply {
	ttl, delegated := noAnswerIsGood, false
	for _, rr := range r.Ns {
		switch rr := rr.(type) {
		case *dns.SOA:
			return reply{ttl: time.Duration(min(rr.Hdr.Ttl, rr.Minttl)) * time.Second}
		case *dns.NS:
			delegated = true
		}
	}
	if delegated && r.Rcode == dns.RcodeSuccess && !r.Authoritative && len(r.Answer) == 0 {
		return reply{err: errors.New("it says whom else to ask; a resolver must ask by itself")}
	}
	return reply{ttl: ttl}
}
