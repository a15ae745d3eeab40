// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	"muster.dev/muster/internal/node/nodeconfig"
)

// Where the machine's name servers are written. EKS writes below /run and does so at each boot; a host joins once.
const (
	pathResolver       = "/etc/resolv.conf"
	pathResolverDropIn = "/etc/systemd/resolved.conf.d/40-eks.conf"
)

// resolverFiles are there only if the user says something about name servers or domains. The other of the two stays as
// the machine has it.
func resolverFiles(spec nodeconfig.Spec, facts Facts, layout Layout) []File {
	network := spec.Instance.Network
	if len(network.Nameservers) == 0 && len(network.Domains) == 0 {
		return nil
	}
	var text strings.Builder
	if layout.Systemd {
		text.WriteString("[Resolve]\n")
		if len(network.Nameservers) > 0 {
			fmt.Fprintf(&text, "DNS=%s\n", strings.Join(network.Nameservers, " "))
		}
		if len(network.Domains) > 0 {
			fmt.Fprintf(&text, "Domains=%s\n", strings.Join(network.Domains, " "))
		}
		return []File{{Path: pathResolverDropIn, Mode: 0o644, Content: []byte(text.String())}}
	}
	if len(network.Nameservers) == 0 {
		network.Nameservers = facts.NameServers
	}
	if len(network.Domains) == 0 {
		network.Domains = facts.SearchDomains
	}
	for _, server := range network.Nameservers {
		fmt.Fprintf(&text, "nameserver %s\n", server)
	}
	if len(network.Domains) > 0 {
		fmt.Fprintf(&text, "search %s\n", strings.Join(network.Domains, " "))
	}
	return []File{{Path: pathResolver, Mode: 0o644, Content: []byte(text.String())}}
}
