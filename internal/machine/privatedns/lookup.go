// SPDX-License-Identifier: Apache-2.0

package privatedns

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/miekg/dns"
)

// Lookup finds the IPv4 addresses of a name for a client in the VPC, as if it had sent a query; none if there is no
// such name.
func (s *Server) Lookup(ctx context.Context, client netip.Addr, name string) ([]netip.Addr, error) {
	if _, ok := dns.IsDomainName(name); !ok {
		return nil, nil
	}
	reply, _ := s.reply(ctx, new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA), func() netip.Addr { return client })
	switch reply.Rcode {
	case dns.RcodeSuccess, dns.RcodeNameError:
	default:
		return nil, fmt.Errorf("looking %q up in the VPC: %s: the host's name servers may not answer", name, dns.RcodeToString[reply.Rcode])
	}
	var addresses []netip.Addr
	for _, record := range reply.Answer { // with the aliases that lead there
		if a, ok := record.(*dns.A); ok {
			if address, ok := netip.AddrFromSlice(a.A.To4()); ok {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses, nil
}
