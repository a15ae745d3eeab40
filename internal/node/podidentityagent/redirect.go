// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Run runs a program to its end and returns its output; an error has what it wrote to stderr.
type Run func(ctx context.Context, program string, args ...string) (string, error)

// Redirect has the kernel lead connections to the agent's addresses, [Port], to its listeners, those of pods and of the machine's own programs
// alike, before any rule for a pod's host port. Senders' addresses stay. It may be done again at any time.
func Redirect(ctx context.Context, run Run, listeners ...net.Listener) error {
	to := make([]netip.AddrPort, 0, len(listeners))
	for _, listener := range listeners {
		at, err := netip.ParseAddrPort(listener.Addr().String())
		if err != nil {
			return fmt.Errorf("reading the address of a listener: %w", err)
		}
		to = append(to, at)
	}
	if _, err := run(ctx, "nft", redirection(to)); err != nil {
		return fmt.Errorf("leading port %d of the pod identity agent to it: %w", Port, err)
	}
	return nil
}

// redirection is the ruleset: one transaction that puts the table in the place of an older one. Chains of kube-proxy and of host ports have priority -100.
func redirection(to []netip.AddrPort) string {
	var rules strings.Builder
	for _, at := range to {
		family := "ip"
		if at.Addr().Is6() {
			family = "ip6"
		}
		fmt.Fprintf(&rules, "\t\t%s daddr %s tcp dport %d dnat %s to %s\n", family, at.Addr(), Port, family, at)
	}
	var ruleset strings.Builder
	ruleset.WriteString("table inet muster-pod-identity\ndelete table inet muster-pod-identity\ntable inet muster-pod-identity {\n")
	for _, hook := range []string{"prerouting", "output"} {
		fmt.Fprintf(&ruleset, "\tchain %s {\n\t\ttype nat hook %s priority -110; policy accept;\n%s\t}\n", hook, hook, rules.String())
	}
	ruleset.WriteString("}\n")
	return ruleset.String()
}
