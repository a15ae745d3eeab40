// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"path/filepath"
	"slices"

	"muster.dev/muster/internal/node/render"
)

// kubeletChains are the words by which iptables removes what a kubelet with makeIPTablesUtilChains has made, and never
// removes itself (pkg/kubelet/kubelet_network_linux.go): its firewall, its hint for others, and the chains by which it
// sees that somebody emptied a table.
func kubeletChains() [][]string {
	var all [][]string
	add := func(args ...string) { all = append(all, append([]string{"-w"}, args...)) }
	add("-D", "INPUT", "-j", "KUBE-FIREWALL")
	add("-D", "OUTPUT", "-j", "KUBE-FIREWALL")
	for _, chain := range [][2]string{
		{"filter", "KUBE-FIREWALL"},
		{"mangle", "KUBE-IPTABLES-HINT"},
		{"filter", "KUBE-KUBELET-CANARY"},
		{"mangle", "KUBE-KUBELET-CANARY"},
		{"nat", "KUBE-KUBELET-CANARY"},
	} {
		add("-t", chain[0], "-F", chain[1])
		add("-t", chain[0], "-X", chain[1])
	}
	return all
}

// removeKubeletChains has iptables remove the kubelet's chains. iptables fails for chains that do not exist, and the
// kernel may have no iptables at all, so errors do not count: a chain without a jump to it does nothing.
func (l *leaving) removeKubeletChains(ctx context.Context) {
	if !slices.Contains(l.ledger.Units, kubeletUnit) {
		return
	}
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, dir := range render.ProgramDirectories() {
			path := filepath.Join(dir, name)
			if !l.disk.exists(path) {
				continue
			}
			for _, args := range kubeletChains() {
				_, _ = l.Run(ctx, l.disk.at(path), args...)
			}
			break
		}
	}
}
