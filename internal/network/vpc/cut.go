// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"

	"muster.dev/muster/internal/platform/host"
)

// Cut drops every packet from a machine and its pods and to them, or lets packets pass again. It has a table of its own,
// so that the rules of security groups can change meanwhile. Repeated calls change nothing. The table goes with the VPC's
// namespace.
func Cut(ctx context.Context, n *Network, own Interface, cut bool) error {
	if held, err := isNamespace(n.mount()); err != nil || !held {
		return err
	}
	namespace, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	if err := host.InNetwork(namespace, func() error { return runNFT(ctx, cutRules(own, cut)) }); err != nil {
		return fmt.Errorf("cutting the network of machine %s: %w", own.Machine, err)
	}
	return nil
}

// cutRules is the ruleset by which the packets of a machine are dropped, or no more. A table is made before it is
// removed, since nft fails to remove a table that is missing.
func cutRules(own Interface, cut bool) string {
	table := "cut_" + strings.NewReplacer("-", "_").Replace(own.Machine)
	var rules strings.Builder
	_, _ = fmt.Fprintf(&rules, "table inet %[1]s\ndelete table inet %[1]s\n", table)
	if !cut {
		return rules.String()
	}
	_, _ = fmt.Fprintf(&rules, "table inet %s {\n", table)
	for _, hook := range []string{"prerouting", "postrouting"} {
		_, _ = fmt.Fprintf(&rules, "chain %[1]s {\ntype filter hook %[1]s priority -450; policy accept;\n", hook)
		for _, of := range []netip.Prefix{netip.PrefixFrom(own.Address, own.Address.BitLen()), own.PodRange} {
			if of.IsValid() {
				_, _ = fmt.Fprintf(&rules, "ip saddr %[1]s drop\nip daddr %[1]s drop\n", of)
			}
		}
		rules.WriteString("}\n")
	}
	rules.WriteString("}\n")
	return rules.String()
}

// runNFT has the kernel take a ruleset as one transaction, in the calling thread's namespace.
func runNFT(ctx context.Context, ruleset string) error {
	ctx, cancel := context.WithTimeout(ctx, nftPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, nft(), "-f", "-")
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(ruleset), &said, &said
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running nft, which the package nftables has: %w: %.500s", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
