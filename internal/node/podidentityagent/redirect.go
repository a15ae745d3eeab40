// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Run runs a program to its end and returns its output; an error has what it wrote to stderr.
type Run func(ctx context.Context, program string, args ...string) (string, error)

// table has the rules of [Redirect].
const table = "muster-pod-identity"

// Redirect has the kernel lead connections to the agent's addresses, [Port], to where it listens, those of pods and of
// the machine's own programs alike, before any rule for a pod's host port. Senders' addresses stay. It may be done
// again at any time.
func Redirect(ctx context.Context, run Run) error {
	if _, err := run(ctx, "nft", redirection()); err != nil {
		return fmt.Errorf("leading port %d of the pod identity agent to it: %w", Port, err)
	}
	return nil
}

// Redirected says which rules of [Redirect] are missing. Without them another program may answer in the agent's place:
// a program that listens on port 80 of all addresses, or has it as a host port, gets the tokens of pods then. A request
// to the address would not show which program answers.
func Redirected(ctx context.Context, run Run) error {
	out, err := run(ctx, "nft", "list", "table", "inet", table)
	if err != nil {
		return fmt.Errorf("looking at the rules that lead to the pod identity agent: %w", err)
	}
	if is, want := strings.Count(out, "dnat ip"), strings.Count(redirection(), "dnat ip"); is != want {
		return fmt.Errorf("%d of %d rules lead to the pod identity agent", is, want)
	}
	return nil
}

// redirection is the ruleset: one transaction that puts the table in the place of an older one. Chains of kube-proxy
// and of host ports have priority -100.
func redirection() string {
	var rules strings.Builder
	for _, at := range []struct{ family, address string }{{"ip", AddressIPv4}, {"ip6", AddressIPv6}} {
		to := net.JoinHostPort(at.address, strconv.Itoa(listenPort))
		fmt.Fprintf(&rules, "\t\t%s daddr %s tcp dport %d dnat %s to %s\n", at.family, at.address, Port, at.family, to)
	}
	var ruleset strings.Builder
	fmt.Fprintf(&ruleset, "table inet %[1]s\ndelete table inet %[1]s\ntable inet %[1]s {\n", table)
	for _, hook := range []string{"prerouting", "output"} {
		fmt.Fprintf(&ruleset, "\tchain %s {\n\t\ttype nat hook %s priority -110; policy accept;\n%s\t}\n", hook, hook, rules.String())
	}
	ruleset.WriteString("}\n")
	return ruleset.String()
}
