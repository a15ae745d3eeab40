// SPDX-License-Identifier: Apache-2.0

// Package kubeproxy is the add-on kube-proxy: a program of each machine, started by the machine's agent. The add-on
// reports its health.
package kubeproxy

import (
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/platform/release"
)

// Addon returns the definition for clusters of a release.
func Addon(of release.Release) addon.Addon {
	return addon.New(addon.Addon{
		Name: "kube-proxy", Type: "networking", Program: of.Version, ClusterVersions: []string{of.Minor()},
		OnMachines: "the agent of each machine runs kube-proxy, in mode nftables", Health: addon.HealthOfProgram,
	})
}
