// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"net/netip"
	"slices"

	"muster.dev/muster/internal/network/securitygroup"
)

// LetsInSSH reports whether the security groups of a machine let the host's SSH client in, and which groups it is in. The client asks
// from the router of the machine's subnet, since the route to the machine says so.
func LetsInSSH(n *Network, machine string, address netip.Addr) (lets bool, groups []string, err error) {
	current, err := n.reload()
	if err != nil {
		return false, nil, err
	}
	kept, err := current.readSecurity()
	if err != nil {
		return false, nil, err
	}
	at := slices.IndexFunc(kept.Interfaces, func(i Interface) bool { return i.Machine == machine })
	if at < 0 {
		return false, nil, nil
	}
	groups = kept.Interfaces[at].SecurityGroups
	return securitygroup.LetsInSSH(kept.Groups, groups, current.routerOf(address)), groups, nil
}
