// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/plane/apiservermemory"
	"muster.dev/muster/internal/platform/host"
)

// ThisHost describes this host. A figure that cannot be read stays 0, and no warning is made of it.
func ThisHost() capacity.Host {
	memory, err := host.Memory()
	if err != nil {
		return capacity.Host{}
	}
	return capacity.Host{CPUs: host.CPUs(), Memory: memory}
}

// UnlimitedMemory is why API servers run without a memory limit; empty if all have one.
func UnlimitedMemory(clusters []Cluster) string {
	for _, c := range clusters {
		if m := apiservermemory.Of(c.Components); m.Limit == 0 && m.Problem != "" {
			return m.Problem
		}
	}
	return ""
}
