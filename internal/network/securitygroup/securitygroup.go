// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
)

// Direction of the connections that a rule lets through.
type Direction string

// The directions, as seen from the members of the group.
const (
	Ingress Direction = "Ingress"
	Egress  Direction = "Egress"
)

// AllProtocols is the protocol of rules for everything; they have no ports.
const AllProtocols = "-1"

// Group is a security group.
type Group struct {
	ID    string `json:"id"`
	Rules []Rule `json:"rules,omitempty"`
}

// Rule lets connections through. It names a range or a group, not both.
type Rule struct {
	Direction Direction `json:"direction"`
	// Protocol is "tcp", "udp", "icmp", the number of another one, or [AllProtocols].
	Protocol string `json:"protocol"`
	// FromPort and ToPort are the first and the last port of tcp and udp; of icmp the type and the code, -1 for any.
	FromPort int32        `json:"fromPort,omitempty"`
	ToPort   int32        `json:"toPort,omitempty"`
	CIDR     netip.Prefix `json:"cidr,omitzero"`
	Group    string       `json:"group,omitempty"`
}

// Member is a machine or an endpoint, with the groups that it is in.
type Member struct {
	// Link is the VPC's end of a machine's link; an endpoint has none.
	Link    string
	Address netip.Addr
	Groups  []string
}

// State is all that a ruleset is made from.
type State struct {
	// CIDR is the range of the VPC.
	CIDR netip.Prefix
	// Own are the addresses of the VPC's services and routers, which every machine may use.
	Own []netip.Addr
	// Routers are those of Own from which the host's own SSH client asks machines.
	Routers []netip.Addr
	Groups  []Group
	Members []Member
	// WayOut is the link over which packets leave the VPC, if there is one: what its sender's groups let through goes,
	// and only answers come.
	WayOut string
}

var (
	idPattern     = regexp.MustCompile(`^sg-[0-9a-f]{8,17}$`)
	linkPattern   = regexp.MustCompile(`^[a-z0-9-]{1,15}$`)
	numberPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,2})$`)
)

// ValidateID checks the form of a group's id, which names chains and sets too.
func ValidateID(id string) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("invalid security group id %q: must be sg- and up to 17 hexadecimal digits", id)
	}
	return nil
}

// Validate checks a rule. Everything that is rendered has passed it: nothing of a rule is ever a statement of its own.
func (r Rule) Validate() error {
	if r.Direction != Ingress && r.Direction != Egress {
		return fmt.Errorf("direction %q is neither %s nor %s", r.Direction, Ingress, Egress)
	}
	if r.Group != "" == r.CIDR.IsValid() {
		return errors.New("a rule names one of a range and a group")
	}
	if r.Group != "" {
		if err := ValidateID(r.Group); err != nil {
			return err
		}
	} else if !r.CIDR.Addr().Is4() {
		return fmt.Errorf("%s is not a range of IPv4 addresses", r.CIDR)
	}
	switch r.Protocol {
	case "tcp", "udp":
		if r.FromPort < 0 || r.ToPort > 65535 || r.FromPort > r.ToPort {
			return fmt.Errorf("ports %d to %d are not a range from 0 to 65535", r.FromPort, r.ToPort)
		}
	case "icmp":
		if r.FromPort < -1 || r.FromPort > 255 || r.ToPort < -1 || r.ToPort > 255 || r.FromPort == -1 && r.ToPort != -1 {
			return fmt.Errorf("icmp type %d with code %d: must be from -1 to 255 each, and a code needs a type", r.FromPort, r.ToPort)
		}
	case AllProtocols:
	default:
		if !numberPattern.MatchString(r.Protocol) || len(r.Protocol) == 3 && r.Protocol > "255" {
			return fmt.Errorf("protocol %q is not tcp, udp, icmp, -1 or a number up to 255", r.Protocol)
		}
	}
	return nil
}

// Validate checks a group with its rules.
func (g Group) Validate() error {
	if err := ValidateID(g.ID); err != nil {
		return err
	}
	for _, rule := range g.Rules {
		if err := rule.Validate(); err != nil {
			return fmt.Errorf("a rule of %s: %w", g.ID, err)
		}
	}
	return nil
}

func (s State) validate() error {
	if !s.CIDR.IsValid() || !s.CIDR.Addr().Is4() {
		return fmt.Errorf("the range of the VPC %s is not one of IPv4 addresses", s.CIDR)
	}
	if s.WayOut != "" && !linkPattern.MatchString(s.WayOut) {
		return fmt.Errorf("invalid link %q of the way out", s.WayOut)
	}
	known := map[string]bool{}
	for _, group := range s.Groups {
		if err := group.Validate(); err != nil {
			return err
		}
		if known[group.ID] {
			return fmt.Errorf("security group %s is there twice", group.ID)
		}
		known[group.ID] = true
	}
	links, addresses := map[string]bool{}, map[netip.Addr]bool{}
	for _, m := range s.Members {
		switch {
		case m.Link != "" && !linkPattern.MatchString(m.Link):
			return fmt.Errorf("invalid link %q of a machine", m.Link)
		case !m.Address.Is4():
			return fmt.Errorf("the address %s of a member is not one of IPv4", m.Address)
		case m.Link != "" && links[m.Link] || addresses[m.Address]:
			return fmt.Errorf("the member %s is there twice", m.Address)
		}
		links[m.Link], addresses[m.Address] = true, true
		for _, id := range m.Groups {
			if err := ValidateID(id); err != nil {
				return err
			}
		}
	}
	for _, address := range slices.Concat(s.Own, s.Routers) {
		if !address.Is4() {
			return fmt.Errorf("the address %s of the VPC is not one of IPv4", address)
		}
	}
	return nil
}
