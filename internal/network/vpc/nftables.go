// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// nftPatience is how long nft may take: it waits for other programs that change rules in the namespace.
const nftPatience = 30 * time.Second

// putInForce has a ruleset in force in a namespace. Which one is, is written beside lo, where it goes with the
// namespace: after any end of any process the next one knows it.
func putInForce(h *netlink.Handle, namespace *os.File, ruleset string) error {
	sum := sha256.Sum256([]byte(ruleset))
	digest := "security groups " + hex.EncodeToString(sum[:])
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding link lo: %w", err)
	}
	if lo.Attrs().Alias == digest {
		return nil
	}
	if err := host.InNetwork(namespace, func() error { return loadRules(ruleset) }); err != nil {
		return err
	}
	if err := h.LinkSetAlias(lo, digest); err != nil {
		return fmt.Errorf("noting which rules are in force: %w", err)
	}
	return nil
}

// loadRules has the kernel take a ruleset as one transaction, in the calling thread's namespace, and sets how
// connections are tracked. It ends by itself soon: one that is cut short by its caller would leave a machine without
// rules.
//
//nolint:contextcheck,nolintlint // see above; the second, since only the analyzer itself reads the first here
func loadRules(ruleset string) error {
	ctx, cancel := context.WithTimeout(context.Background(), nftPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, nft(), "-f", "-")
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(ruleset), &said, &said
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running nft, which the package nftables has: %w: %.500s", err, bytes.TrimSpace(said.Bytes()))
	}
	for _, setting := range []struct{ name, value string }{
		// One side of a connection may have ended for long: see what kube-proxy sets on machines.
		{"nf_conntrack_tcp_timeout_close_wait", "3600"},
		// Packets beside the window are the two ends' business.
		{"nf_conntrack_tcp_be_liberal", "1"},
	} {
		if err := os.WriteFile("/proc/sys/net/netfilter/"+setting.name, []byte(setting.value), 0); err != nil {
			return fmt.Errorf("setting net.netfilter.%s: %w", setting.name, err)
		}
	}
	return nil
}

// nft is the path of the program.
func nft() string {
	if path, err := exec.LookPath("nft"); err == nil {
		return path
	}
	return "/usr/sbin/nft"
}

// CheckPrograms finds out whether the host has what security groups are put in force by.
func CheckPrograms() error {
	if _, err := os.Stat(nft()); err != nil {
		return fmt.Errorf("this host has no program nft, by which security groups are put in force (%w): install the package nftables, or choose --provider simulated", err)
	}
	return nil
}

// forgetConnections forgets the tracked connections of a range of addresses: a later machine with one of them must be
// let through by rules of its own.
func forgetConnections(namespace *os.File, of netip.Prefix) error {
	return withNetfilter(namespace, func(h *netlink.Handle) error {
		filters := make([]netlink.CustomConntrackFilter, 0, 2)
		for _, side := range []netlink.ConntrackFilterType{netlink.ConntrackOrigSrcIP, netlink.ConntrackOrigDstIP} {
			filter := &netlink.ConntrackFilter{}
			if err := filter.AddIPNet(side, ipNet(of)); err != nil {
				return fmt.Errorf("choosing connections: %w", err)
			}
			filters = append(filters, filter)
		}
		if _, err := h.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, filters...); err != nil {
			return fmt.Errorf("forgetting connections: %w", err)
		}
		return nil
	})
}
