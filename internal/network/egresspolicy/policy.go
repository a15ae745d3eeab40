// SPDX-License-Identifier: Apache-2.0

package egresspolicy

import (
	"fmt"
	"net/netip"
	"slices"
)

// Mode is how packets leave a VPC.
type Mode string

const (
	// None means that nothing leaves.
	None Mode = "None"
	// NAT means that connections and datagrams leave by sockets of the host.
	NAT Mode = "NAT"
)

// MaxRanges is how many ranges may be allowed, and how many denied.
const MaxRanges = 64

// Policy is what a VPC's way out lets through. It is kept on disk, in the description of the VPC.
type Policy struct {
	// Mode is NAT or None; empty is None.
	Mode Mode `json:"mode,omitempty"`
	// Allowed are private ranges that may be reached, and exceptions from what is denied.
	Allowed []netip.Prefix `json:"allowedRanges,omitempty"`
	// Denied are ranges that may not be reached.
	Denied []netip.Prefix `json:"deniedRanges,omitempty"`
}

// IsOpen reports whether anything leaves at all.
func (p Policy) IsOpen() bool { return p.Mode == NAT }

// Equal reports whether two policies are the same.
func (p Policy) Equal(other Policy) bool {
	return p.IsOpen() == other.IsOpen() && slices.Equal(p.Allowed, other.Allowed) && slices.Equal(p.Denied, other.Denied)
}

// Validate checks a policy, and names the field that is wrong.
func (p Policy) Validate() error {
	switch p.Mode {
	case None, NAT, "":
	default:
		return fmt.Errorf("egress.mode is %q: must be NAT or None", p.Mode)
	}
	for _, list := range []struct {
		field  string
		ranges []netip.Prefix
	}{{"allowedRanges", p.Allowed}, {"deniedRanges", p.Denied}} {
		if len(list.ranges) > MaxRanges {
			return fmt.Errorf("egress.%s has %d ranges: %d at most", list.field, len(list.ranges), MaxRanges)
		}
		for i, r := range list.ranges {
			if !r.IsValid() || !r.Addr().Is4() || r.Masked() != r {
				return fmt.Errorf("egress.%s[%d] is %q: must be a range of IPv4 addresses, as 10.20.0.0/16", list.field, i, r)
			}
		}
	}
	for i, r := range p.Allowed {
		if reserved, ok := overlapping(never, r); ok && r.Bits() >= reserved.Bits() {
			return fmt.Errorf("egress.allowedRanges[%d] is %s: nothing in %s can be reached by a VPC's way out", i, r, reserved)
		}
	}
	return nil
}

// Parse makes a policy of what people write, and checks it.
func Parse(mode string, allowed, denied []string) (Policy, error) {
	p := Policy{Mode: Mode(mode)}
	var err error
	if p.Allowed, err = parseRanges("allowedRanges", allowed); err != nil {
		return Policy{}, err
	}
	if p.Denied, err = parseRanges("deniedRanges", denied); err != nil {
		return Policy{}, err
	}
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

func parseRanges(field string, texts []string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for i, text := range texts {
		r, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("egress.%s[%d] is %q: must be a range of IPv4 addresses, as 10.20.0.0/16", field, i, text)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// never are ranges that no list opens.
var never = prefixes(
	"0.0.0.0/8", "127.0.0.0/8", // the host itself
	"169.254.0.0/16",                         // link-local, where clouds have their metadata
	"224.0.0.0/4",                            // groups
	"240.0.0.0/4",                            // reserved, and everybody at once
	"192.0.0.0/24",                           // protocol assignments; Oracle's cloud has its metadata there
	"100.100.100.200/32", "168.63.129.16/32", // metadata of Alibaba's cloud and of Azure
)

// private are ranges that are other people's networks, mostly the host's own: reached only if they are listed.
var private = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func overlapping(ranges []netip.Prefix, r netip.Prefix) (netip.Prefix, bool) {
	at := slices.IndexFunc(ranges, r.Overlaps)
	if at < 0 {
		return netip.Prefix{}, false
	}
	return ranges[at], true
}
