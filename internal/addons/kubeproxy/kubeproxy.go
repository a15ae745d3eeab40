// SPDX-License-Identifier: Apache-2.0

// Package kubeproxy is the add-on kube-proxy: a program of each machine, started by the machine's agent. The add-on reports its health.
package kubeproxy

import (
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/platform/version"
)

// Addon returns the definition.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: "kube-proxy", Type: "networking", Program: version.Kubernetes,
		OnMachines: "the agent of each machine runs kube-proxy, in mode nftables", Health: addon.HealthOfProgram,
	})
}
