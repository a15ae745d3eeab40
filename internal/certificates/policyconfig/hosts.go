// SPDX-License-Identifier: Apache-2.0

package policyconfig

// The ConfigMap of hosts that operators registered, in each cluster of Muster's own: a source of machines beside the
// management plane.
const (
	HostsNamespace = "muster-system"
	HostsConfigMap = "machines"
)
