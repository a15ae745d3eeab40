// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"net/netip"
	"slices"
)

// LetsInSSH reports whether the groups of a machine let in what comes from an address to the port of SSH.
func LetsInSSH(groups []Group, of []string, from netip.Addr) bool {
	return slices.ContainsFunc(groups, func(group Group) bool {
		return slices.Contains(of, group.ID) && slices.ContainsFunc(group.Rules, func(rule Rule) bool { return rule.letsInSSH(from) })
	})
}

func (r Rule) letsInSSH(from netip.Addr) bool {
	meant := r.Protocol == AllProtocols || r.Protocol == "tcp" && r.FromPort <= sshPort && sshPort <= r.ToPort
	return r.Direction == Ingress && meant && r.CIDR.IsValid() && r.CIDR.Contains(from)
}
