// SPDX-License-Identifier: Apache-2.0

package privatedns

import (
	"net"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"muster.dev/muster/internal/machine/machine"
)

const (
	// ttl is how many seconds an answer may be kept: an address goes to another machine once its machine is gone.
	ttl = 60
	// negativeTTL is how many seconds a name may be taken for one that does not exist: the machine may be launched any
	// moment.
	negativeTTL = 5
)

// zone is all that the name server knows.
type zone struct {
	records map[string][]dns.RR // by name, in lower case and with the final dot
	exists  map[string]bool     // names with records, and those that such a name ends with
}

// newZone makes the zone of some machines, of services at an address, and of load balancers. Of two machines with one
// name or address, which the records do not hold, both are in it.
func newZone(machines []machine.Record, services []string, at netip.Addr, balancers map[string]netip.Addr) *zone {
	z := &zone{records: map[string][]dns.RR{}, exists: map[string]bool{".": true}}
	for _, name := range services {
		z.add(&dns.A{Hdr: header(dns.Fqdn(strings.ToLower(name)), dns.TypeA, ttl), A: net.IP(at.AsSlice())})
	}
	for name, address := range balancers {
		z.add(&dns.A{Hdr: header(dns.Fqdn(strings.ToLower(name)), dns.TypeA, ttl), A: net.IP(address.AsSlice())})
	}
	for _, m := range machines {
		reverse, err := dns.ReverseAddr(m.PrivateIP.String())
		if err != nil || !m.PrivateIP.Is4() {
			continue
		}
		name := dns.Fqdn(strings.ToLower(m.PrivateDNSName))
		for _, owner := range []string{name, dns.Fqdn(strings.ToLower(m.ID + "." + m.Domain))} {
			z.add(&dns.A{Hdr: header(owner, dns.TypeA, ttl), A: net.IP(m.PrivateIP.AsSlice())})
		}
		z.add(&dns.PTR{Hdr: header(reverse, dns.TypePTR, ttl), Ptr: name})
	}
	return z
}

func header(name string, kind uint16, seconds uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: seconds}
}

func (z *zone) add(record dns.RR) {
	name := record.Header().Name
	if _, ok := dns.IsDomainName(name); !ok {
		return
	}
	z.records[name] = append(z.records[name], record)
	// A name that others end with exists, though it has no records (RFC 8020).
	for _, start := range dns.Split(name) {
		z.exists[name[start:]] = true
	}
}

// answer fills in the reply to a query with one question. A query with fewer questions than its header counts gets
// here, too.
func (z *zone) answer(query *dns.Msg) *dns.Msg {
	if len(query.Question) != 1 {
		return new(dns.Msg).SetRcodeFormatError(query)
	}
	reply := new(dns.Msg).SetReply(query)
	if extensions := query.IsEdns0(); extensions != nil {
		reply.SetEdns0(udpSize, false)
		if extensions.Version() != 0 {
			reply.SetRcode(query, dns.RcodeBadVers)
			return reply
		}
	}
	question := query.Question[0]
	if query.Opcode != dns.OpcodeQuery {
		reply.Rcode = dns.RcodeNotImplemented
		return reply
	}
	if question.Qclass != dns.ClassINET || question.Qtype == dns.TypeAXFR || question.Qtype == dns.TypeIXFR {
		reply.Rcode = dns.RcodeRefused
		return reply
	}
	reply.Authoritative, reply.RecursionAvailable = true, true
	name := strings.ToLower(question.Name)
	for _, record := range z.records[name] {
		if question.Qtype == record.Header().Rrtype || question.Qtype == dns.TypeANY {
			record = dns.Copy(record)
			record.Header().Name = question.Name // in the case that was asked for, by which some tell forged answers
			reply.Answer = append(reply.Answer, record)
		}
	}
	if len(reply.Answer) > 0 {
		return reply
	}
	if !z.exists[name] {
		reply.Rcode = dns.RcodeNameError
	}
	// The SOA says how long "no" is good (RFC 2308, section 5). All names are in one zone, as there is nobody else to
	// ask.
	reply.Ns = []dns.RR{&dns.SOA{
		Hdr: header(".", dns.TypeSOA, negativeTTL), Ns: "localhost.", Mbox: "nobody.invalid.",
		Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: negativeTTL,
	}}
	return reply
}
