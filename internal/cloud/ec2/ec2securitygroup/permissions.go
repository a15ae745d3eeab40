// SPDX-License-Identifier: Apache-2.0

package ec2securitygroup

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// The codes of rules.
const (
	duplicateRule = "InvalidPermission.Duplicate"
	unknownRule   = "InvalidPermission.NotFound"
	tooManyRules  = "RulesPerSecurityGroupLimitExceeded"
	MostRules     = 60 // of a group in one direction, as AWS allows unasked
)

// ipPermission is a protocol with ports, and all that it is let through from or to: several rules in one.
type ipPermission struct {
	IPProtocol       string      `filter:"protocol"`
	FromPort         *int32      `filter:"from-port"`
	ToPort           *int32      `filter:"to-port"`
	IPRanges         []ipRange   `filter:""`
	Ipv6Ranges       []ipv6Range `filter:""`
	UserIDGroupPairs []groupPair `filter:""`
}

type ipRange struct {
	CidrIP      string `filter:"cidr"`
	Description string
}

type ipv6Range struct {
	CidrIpv6    string `filter:"ipv6-cidr"`
	Description string
}

type groupPair struct {
	GroupID            string `filter:"group-id"`
	GroupName          string
	UserID             string `filter:"user-id"`
	VpcID, Description string
}

// shownPermissions are the rules of one direction as EC2 tells of them: those of the same protocol and ports together.
func shownPermissions(call *awsfront.Call, rules []v1alpha1.SecurityGroupRule, direction v1alpha1.RuleDirection) []ipPermission {
	shown := []ipPermission{}
	for _, r := range rules {
		if r.Direction != direction {
			continue
		}
		at := slices.IndexFunc(shown, func(p ipPermission) bool {
			return p.IPProtocol == r.Protocol && ec2resource.PortText(p.FromPort) == ec2resource.PortText(r.FromPort) && ec2resource.PortText(p.ToPort) == ec2resource.PortText(r.ToPort)
		})
		if at < 0 {
			at = len(shown)
			shown = append(shown, ipPermission{IPProtocol: r.Protocol, FromPort: r.FromPort, ToPort: r.ToPort, IPRanges: []ipRange{}, Ipv6Ranges: []ipv6Range{}, UserIDGroupPairs: []groupPair{}})
		}
		p := &shown[at]
		switch {
		case r.CIDRIPv4 != "":
			p.IPRanges = append(p.IPRanges, ipRange{r.CIDRIPv4, r.Description})
		case r.CIDRIPv6 != "":
			p.Ipv6Ranges = append(p.Ipv6Ranges, ipv6Range{r.CIDRIPv6, r.Description})
		default:
			p.UserIDGroupPairs = append(p.UserIDGroupPairs, groupPair{GroupID: r.GroupID, UserID: call.Caller.Account(), Description: r.Description})
		}
	}
	return shown
}

// rulesOf are the rules that permissions of a request mean, without ids. Group pairs name groups by id; names were
// looked up before.
func rulesOf(call *awsfront.Call, permissions []ipPermission, direction v1alpha1.RuleDirection) ([]v1alpha1.SecurityGroupRule, error) {
	var rules []v1alpha1.SecurityGroupRule
	for _, p := range permissions {
		base, err := protocolOf(p.IPProtocol, p.FromPort, p.ToPort)
		if err != nil {
			return nil, err
		}
		base.Direction = direction
		before := len(rules)
		add := func(description string, peer func(*v1alpha1.SecurityGroupRule) error) error {
			r := base
			r.Description = description
			if err := checkDescription(description); err != nil {
				return err
			}
			err := peer(&r)
			rules = append(rules, r)
			return err
		}
		for _, v4 := range p.IPRanges {
			if err := add(v4.Description, func(r *v1alpha1.SecurityGroupRule) (err error) {
				r.CIDRIPv4, err = canonical(v4.CidrIP, true)
				return err
			}); err != nil {
				return nil, err
			}
		}
		for _, v6 := range p.Ipv6Ranges {
			if err := add(v6.Description, func(r *v1alpha1.SecurityGroupRule) (err error) {
				r.CIDRIPv6, err = canonical(v6.CidrIpv6, false)
				return err
			}); err != nil {
				return nil, err
			}
		}
		for _, pair := range p.UserIDGroupPairs {
			if err := add(pair.Description, func(r *v1alpha1.SecurityGroupRule) error { r.GroupID = pair.GroupID; return checkPair(call, pair) }); err != nil {
				return nil, err
			}
		}
		if len(rules) == before {
			return nil, awsfault.Errorf(ec2resource.MissingParameter, "Either 'ipRanges' or 'groups' should be provided.")
		}
	}
	if len(rules) == 0 {
		return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter ipPermissions")
	}
	for i, r := range rules {
		if slices.ContainsFunc(rules[:i], func(o v1alpha1.SecurityGroupRule) bool { return sameRule(o, r) }) {
			return nil, awsfault.Errorf(ec2resource.InvalidParameter, "The same permission must not appear multiple times")
		}
	}
	return rules, nil
}

func checkPair(call *awsfront.Call, pair groupPair) error {
	if pair.UserID != "" && pair.UserID != call.Caller.Account() {
		return awsfault.Errorf("InvalidGroup.NotFound", "The security group '%.64s' of account %.20s does not exist: Muster has one account", pair.GroupID, pair.UserID)
	}
	return ec2id.SecurityGroup.Check(pair.GroupID)
}

// protocolOf reads a protocol with its ports, or icmp's type and code.
func protocolOf(text string, from, to *int32) (v1alpha1.SecurityGroupRule, error) {
	r := v1alpha1.SecurityGroupRule{Protocol: strings.ToLower(text)}
	switch r.Protocol {
	case "all":
		r.Protocol = v1alpha1.AllProtocols
	case "6":
		r.Protocol = "tcp"
	case "17":
		r.Protocol = "udp"
	case "1":
		r.Protocol = "icmp"
	case "58":
		r.Protocol = "icmpv6"
	}
	switch r.Protocol {
	case v1alpha1.AllProtocols:
	case "tcp", "udp":
		if from == nil || to == nil {
			return r, awsfault.Errorf(ec2resource.InvalidParameter, "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.")
		}
		if *from == -1 && *to == -1 { // all of them
			from, to = new(int32(0)), new(int32(65535))
		}
		if *from < 0 || *to > 65535 || *from > *to {
			return r, awsfault.Errorf(ec2resource.InvalidParameter, "Invalid TCP/UDP port range (%d:%d)", *from, *to)
		}
		r.FromPort, r.ToPort = from, to
	case "icmp", "icmpv6":
		kind, code := int32(-1), int32(-1)
		if from != nil {
			kind = *from
		}
		if to != nil {
			code = *to
		}
		if kind < -1 || kind > 255 || code < -1 || code > 255 || kind == -1 && code != -1 {
			return r, awsfault.Errorf(ec2resource.InvalidParameter, "ICMP type (%d) and code (%d) must be from -1 to 255, and a code needs a type", kind, code)
		}
		r.FromPort, r.ToPort = &kind, &code
	default:
		n, err := strconv.Atoi(r.Protocol)
		if err != nil || n < 0 || n > 255 {
			return r, awsfault.Errorf(ec2resource.InvalidParameter, "Invalid value '%.64s' for IP protocol. Unknown protocol.", text)
		}
		r.Protocol = strconv.Itoa(n)
	}
	return r, nil
}

// canonical reads a range. Bits behind its length are dropped, as EC2 does.
func canonical(text string, v4 bool) (string, error) {
	cidr, err := netip.ParsePrefix(text)
	if err != nil || cidr.Addr().Is4() != v4 || cidr.Addr().Is4In6() {
		return "", awsfault.Errorf(ec2resource.InvalidParameter, "CIDR block %.64s is malformed", text)
	}
	return cidr.Masked().String(), nil
}

// described are the characters of descriptions of rules and groups, and of names of groups.
const described = " ._-:/()#,@[]+=&;{}!$*"

func plainText(text string) bool {
	return len(text) <= 255 && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune(described, c)
	})
}

func checkDescription(text string) error {
	if !plainText(text) {
		return awsfault.Errorf(ec2resource.InvalidParameter, "Invalid rule description. Valid descriptions are strings less than 256 characters from the following set: a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*")
	}
	return nil
}

// sameRule reports whether two rules let the same through, whatever is said of them.
func sameRule(a, b v1alpha1.SecurityGroupRule) bool {
	return a.Direction == b.Direction && a.Protocol == b.Protocol && ec2resource.PortText(a.FromPort) == ec2resource.PortText(b.FromPort) && ec2resource.PortText(a.ToPort) == ec2resource.PortText(b.ToPort) &&
		a.CIDRIPv4 == b.CIDRIPv4 && a.CIDRIPv6 == b.CIDRIPv6 && a.GroupID == b.GroupID
}

// ruleText is a rule in EC2's messages.
func ruleText(r v1alpha1.SecurityGroupRule) string {
	protocol := strings.ToUpper(r.Protocol)
	if r.Protocol == v1alpha1.AllProtocols {
		protocol = "ALL"
	}
	text := "peer: " + cmp.Or(r.CIDRIPv4, r.CIDRIPv6, r.GroupID) + ", " + protocol
	if r.FromPort != nil && r.ToPort != nil {
		text += fmt.Sprintf(", from port: %d, to port: %d", *r.FromPort, *r.ToPort)
	}
	return text + ", ALLOW"
}
