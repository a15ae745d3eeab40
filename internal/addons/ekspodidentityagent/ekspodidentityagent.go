// SPDX-License-Identifier: Apache-2.0

// Package ekspodidentityagent is the add-on eks-pod-identity-agent: a server of each machine, in the machine's agent.
// The add-on reports its health.
package ekspodidentityagent

import "muster.dev/muster/internal/addons/addon"

// program is the version of EKS's agent that Muster's behaves like.
const program = "v1.3.10"

// Addon returns the definition.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: "eks-pod-identity-agent", Type: "security", Program: program,
		OnMachines: "the agent of each machine answers pods at 169.254.170.23 and [fd00:ec2::23], port 80", Health: addon.HealthOfPodIdentity,
	})
}
