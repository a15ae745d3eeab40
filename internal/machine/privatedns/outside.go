// SPDX-License-Identifier: Apache-2.0

package privatedns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	// maxOutside bounds the queries that wait for the host's name servers, maxOutsidePerMachine those of one machine
	// with its pods: a machine may send from any address of its pods.
	maxOutside, maxOutsidePerMachine = 512, 128
	// askPatience is how long one of the host's name servers may take, outsidePatience all of them: clients ask again
	// after five seconds.
	askPatience, outsidePatience = 2 * time.Second, 4500 * time.Millisecond
)

// errTooMany says that no more queries are waited for.
var errTooMany = errors.New("too many queries")

// outside asks the host's name servers.
type outside struct {
	mutex sync.Mutex
	total int
	each  map[netip.Addr]int
}

// ask has the first of the servers answer that can. The query is made anew: nothing of a client's but its question and
// whether it wants signatures leaves the VPC.
func (o *outside) ask(ctx context.Context, servers []string, machine netip.Addr, query *dns.Msg) (*dns.Msg, error) {
	if !o.take(machine) {
		return nil, errTooMany
	}
	defer o.give(machine)
	ctx, cancel := context.WithTimeout(ctx, outsidePatience)
	defer cancel()
	asked := new(dns.Msg)
	asked.RecursionDesired, asked.CheckingDisabled = true, query.CheckingDisabled
	asked.Question = []dns.Question{query.Question[0]}
	extensions := query.IsEdns0()
	asked.SetEdns0(udpSize, extensions != nil && extensions.Do())
	var failed *dns.Msg
	errs := []error{errors.New("the host has no name server")}
	for i, server := range servers {
		if i == 0 {
			errs = nil
		}
		reply, err := exchange(ctx, server, asked)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("asking %s: %w", server, err))
		case reply.Rcode == dns.RcodeServerFailure || reply.Rcode == dns.RcodeRefused || reply.Rcode == dns.RcodeNotImplemented:
			failed = reply
		default:
			return reply, nil
		}
	}
	if failed != nil {
		return failed, nil
	}
	return nil, errors.Join(errs...)
}

// exchange asks one server, by TCP too if the answer does not fit into a packet.
func exchange(ctx context.Context, server string, asked *dns.Msg) (*dns.Msg, error) {
	for _, network := range []string{"udp", "tcp"} {
		asked.Id = uint16(rand.Uint32()) //nolint:gosec // G404,G115: math/rand/v2 is seeded by the system, and any 16 bits are an id
		client := dns.Client{Net: network, Timeout: askPatience, UDPSize: udpSize}
		reply, _, err := client.ExchangeContext(ctx, asked.Copy(), server)
		switch {
		case err != nil:
			return nil, err
		case !reply.Response || len(reply.Question) != 1 || !sameQuestion(reply.Question[0], asked.Question[0]):
			return nil, errors.New("the answer is to another question")
		case !reply.Truncated:
			return reply, nil
		}
	}
	return nil, errors.New("the answer is cut short over TCP")
}

func sameQuestion(a, b dns.Question) bool {
	return a.Qtype == b.Qtype && a.Qclass == b.Qclass && strings.EqualFold(a.Name, b.Name)
}

func (o *outside) take(machine netip.Addr) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	// Even if many machines take all that they may, another machine still gets a share.
	left := maxOutside - o.total
	if left <= 0 || o.each[machine] >= min(maxOutsidePerMachine, max(1, left/2)) {
		return false
	}
	if o.each == nil {
		o.each = map[netip.Addr]int{}
	}
	o.total++
	o.each[machine]++
	return true
}

func (o *outside) give(machine netip.Addr) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.total--
	if o.each[machine]--; o.each[machine] == 0 {
		delete(o.each, machine)
	}
}

// passOn makes the reply to a client of what a server outside has answered.
func passOn(query, answer *dns.Msg) *dns.Msg {
	reply := new(dns.Msg).SetReply(query)
	reply.RecursionAvailable = true
	reply.AuthenticatedData, reply.Rcode = answer.AuthenticatedData, answer.Rcode
	reply.Answer, reply.Ns = answer.Answer, answer.Ns
	for _, record := range answer.Extra {
		if record.Header().Rrtype != dns.TypeOPT {
			reply.Extra = append(reply.Extra, record)
		}
	}
	extensions := query.IsEdns0()
	switch {
	case extensions != nil:
		reply.SetEdns0(udpSize, extensions.Do())
	case reply.Rcode > 0xf: // which takes an extension to be said
		reply.Rcode = dns.RcodeServerFailure
	}
	return reply
}

// fit cuts a reply to what its client takes in one packet; over TCP everything fits.
func fit(reply, query *dns.Msg, from net.Addr) {
	if _, packet := from.(*net.UDPAddr); !packet {
		return
	}
	size := dns.MinMsgSize
	if extensions := query.IsEdns0(); extensions != nil {
		size = min(max(size, int(extensions.UDPSize())), udpSize)
	}
	reply.Truncate(size)
}

// clientOf is the address that a query comes from.
func clientOf(from net.Addr) netip.Addr {
	switch from := from.(type) {
	case *net.UDPAddr:
		return from.AddrPort().Addr().Unmap()
	case *net.TCPAddr:
		return from.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// staysInside are domains that nobody outside is asked about: of single hosts and networks (RFC 6303, RFC 6761, RFC
// 6762, RFC 7686), and of clusters.
var staysInside = func() map[string]bool {
	domains := map[string]bool{}
	for _, domain := range []string{
		"localhost.", "local.", "invalid.", "onion.", "cluster.local.",
		"0.in-addr.arpa.", "10.in-addr.arpa.", "127.in-addr.arpa.", "254.169.in-addr.arpa.", "168.192.in-addr.arpa.", "255.255.255.255.in-addr.arpa.",
		"d.f.ip6.arpa.", "8.e.f.ip6.arpa.", "9.e.f.ip6.arpa.", "a.e.f.ip6.arpa.", "b.e.f.ip6.arpa.",
		strings.Repeat("0.", 32) + "ip6.arpa.", "1." + strings.Repeat("0.", 31) + "ip6.arpa.",
	} {
		domains[domain] = true
	}
	for i := 16; i < 32; i++ {
		domains[fmt.Sprintf("%d.172.in-addr.arpa.", i)] = true
	}
	for i := 64; i < 128; i++ {
		domains[fmt.Sprintf("%d.100.in-addr.arpa.", i)] = true
	}
	return domains
}()

// isInside reports whether a name is one that nobody outside is asked about. A name of one label is meant for a search
// domain.
func (s *Server) isInside(name string) bool {
	name = strings.ToLower(dns.Fqdn(name))
	starts := dns.Split(name)
	if len(starts) < 2 {
		return true
	}
	for _, start := range starts {
		if domain := name[start:]; staysInside[domain] || domain == s.domain {
			return true
		}
	}
	return false
}
