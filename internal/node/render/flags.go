// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
)

// Flags of the kubelet that are looked at among the user's.
const (
	flagHostnameOverride = "hostname-override"
	flagMaxPods          = "max-pods"
	flagNodeIP           = "node-ip"
	flagNodeLabels       = "node-labels"
	flagReservedCPUs     = "reserved-cpus"
)

// reservedFlags are the kubelet's flags that say where files are which muster writes, watches and removes: a node with
// others would join unseen or not at all.
func reservedFlags() []string {
	return []string{"bootstrap-kubeconfig", "cert-dir", "config", "config-dir", "kubeconfig"}
}

// flag is one flag with its value, and where it is among the arguments.
type flag struct {
	index       int
	name, value string
}

// parseFlags finds the flags that are looked at, as the kubelet would: --name=value or --name value, with _ for - if
// one likes (k8s.io/component-base/cli/flag, WordSepNormalizeFunc).
func parseFlags(args []string) []flag {
	interesting := append(reservedFlags(), flagHostnameOverride, flagMaxPods, flagNodeIP, flagNodeLabels, flagReservedCPUs)
	var found []flag
	for i := 0; i < len(args); i++ {
		long, ok := strings.CutPrefix(args[i], "--")
		if !ok {
			continue
		}
		name, value, given := strings.Cut(long, "=")
		name = strings.ReplaceAll(name, "_", "-")
		if !slices.Contains(interesting, name) {
			continue
		}
		f := flag{index: i, name: name, value: value}
		if !given && i+1 < len(args) {
			i++
			f.value = args[i]
		}
		found = append(found, f)
	}
	return found
}

// lastFlag returns the value of a flag. If the flag is repeated, the last value wins.
func lastFlag(args []string, name string) (value string, ok bool) {
	for _, f := range parseFlags(args) {
		if f.name == name {
			value, ok = f.value, true
		}
	}
	return value, ok
}
