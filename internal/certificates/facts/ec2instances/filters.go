// SPDX-License-Identifier: Apache-2.0

package ec2instances

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/internal/certificates/facts"
)

// The filters of DescribeInstances that instances are looked up by (its reference, "Filter.N"). Several filters in one
// call must all match, so each filter is a call of its own. The filters of addresses match any address of any
// interface, not only the first address. The reference describes the filter of public addresses as an "ID of the
// association", which is the text of another filter.
const (
	byInstanceID     = "instance-id"
	byPrivateDNSName = "private-dns-name"
	byPublicDNSName  = "dns-name"
	byPrivateIPv4    = "network-interface.addresses.private-ip-address"
	byPublicIPv4     = "network-interface.addresses.association.public-ip"
	byIPv6           = "network-interface.ipv6-addresses.ipv6-address"
)

// isOurs reports whether instances are looked up by a filter, so that it cannot limit them as well.
func isOurs(filter string) bool {
	return slices.Contains([]string{byInstanceID, byPrivateDNSName, byPublicDNSName, byPrivateIPv4, byPublicIPv4, byIPv6}, filter)
}

// lookup is a filter and the value by which something is found.
type lookup struct{ filter, value string }

// lookups are the calls that find the instances of a subject.
func (s *source) lookups(subject facts.Subject) []lookup {
	switch {
	case subject.Name != "":
		return ownerLookups(subject.Name)
	case subject.ID != "":
		return []lookup{{byInstanceID, subject.ID}}
	case s.config.NodeNames == PrivateDNSName:
		return []lookup{{byPrivateDNSName, subject.Node}}
	default:
		return []lookup{{byInstanceID, firstLabel(subject.Node)}}
	}
}

// ownerLookups are the calls that find the owners of a name or an address. EC2 makes names of what they stand for (user
// guide, "EC2 instance hostnames and domains"): ip-10-0-0-1 of a private address, ec2-192-0-2-1 of a public one,
// i-0123456789abcdef0 of the instance. So by that they are found, at whichever interface they are and in whatever case
// they are written. There are filters for the names of interfaces, too, which would be more calls and find no more. EC2
// gives out no other names, but others that speak its protocol do: those are asked for as they are. So is ip-10-0-0-1,
// by which nodes are mostly found: that call is made anyway.
func ownerLookups(name string) []lookup {
	if ip, err := netip.ParseAddr(name); err == nil {
		switch {
		case ip.Is6():
			return []lookup{{byIPv6, ip.String()}}
		case mayBePublic(ip):
			return []lookup{{byPrivateIPv4, ip.String()}, {byPublicIPv4, ip.String()}} // a VPC may use public ranges as private ones
		default:
			return []lookup{{byPrivateIPv4, ip.String()}}
		}
	}
	label := firstLabel(name)
	if ip, ok := addressIn(label, "ip-"); ok {
		return []lookup{{byPrivateDNSName, name}, {byPrivateIPv4, ip.String()}}
	}
	if ip, ok := addressIn(label, "ec2-"); ok && mayBePublic(ip) {
		return []lookup{{byPublicIPv4, ip.String()}}
	}
	if instanceID.MatchString(label) {
		return []lookup{{byInstanceID, label}}
	}
	return []lookup{{byPrivateDNSName, name}, {byPublicDNSName, name}}
}

// addressIn reads the address in a label that EC2 made of it.
func addressIn(label, prefix string) (netip.Addr, bool) {
	text, ok := strings.CutPrefix(label, prefix)
	ip, err := netip.ParseAddr(strings.ReplaceAll(text, "-", "."))
	return ip, ok && err == nil && ip.Is4()
}

// mayBePublic reports whether an IPv4 address may be one of the Internet: not those of RFC 1918 and RFC 6598.
func mayBePublic(ip netip.Addr) bool {
	return !ip.IsPrivate() && !netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10).Contains(ip)
}

var instanceID = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

// valid reports whether an instance may be called so, or have that name or address. It also keeps * and ? away, which
// EC2 takes for any text.
func (s *source) valid(subject facts.Subject) bool {
	switch {
	case subject.Name != "":
		if ip, err := netip.ParseAddr(subject.Name); err == nil {
			return ip.IsGlobalUnicast() && ip.Zone() == "" && ip == ip.Unmap()
		}
		return validName(subject.Name)
	case subject.ID != "":
		return instanceID.MatchString(subject.ID)
	}
	switch s.config.NodeNames {
	case ResourceName:
		return validName(subject.Node) && instanceID.MatchString(firstLabel(subject.Node))
	case InstanceID:
		return instanceID.MatchString(subject.Node)
	default:
		return validName(subject.Node)
	}
}

func firstLabel(name string) string {
	label, _, _ := strings.Cut(name, ".")
	return label
}

func validName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
