// SPDX-License-Identifier: Apache-2.0

// Package vpccni is the add-on vpc-cni: the network plugins ptp and portmap on each machine, with routes in the VPC.
// The add-on reports their health.
package vpccni

import (
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/platform/version"
)

// Addon returns the definition.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: "vpc-cni", Type: "networking", Program: version.CNI,
		OnMachines: "the network plugins ptp, host-local and portmap are programs of each machine, and the VPC routes the pod range of each node to its machine",
		Health:     addon.HealthOfNetwork,
	})
}
