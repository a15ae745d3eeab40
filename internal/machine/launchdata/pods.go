// SPDX-License-Identifier: Apache-2.0

package launchdata

import (
	"slices"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/userdata"
)

// Pods is how many pods an instance of a type takes that is launched with some user data: the kubelet's limit, by its
// NodeConfig or by its type. Scripts may change the limit, so user data with a script counts for at least the kubelet's
// own default. User data that the machine cannot use does not count.
func Pods(raw []byte, instanceType string) int {
	instance := render.Instance{Type: instanceType}
	pods, err := render.MaxPods(nodeconfig.Spec{}, instance)
	if err != nil {
		pods = nodeconfig.DefaultMaxPods
	}
	if parts, err := userdata.Read(raw); err == nil {
		documents, _ := userdata.NodeConfigs(parts)
		if merged, err := nodeconfig.Read(documents, true); err == nil {
			if said, err := render.MaxPods(merged.Spec, instance); err == nil {
				pods = said
			}
		}
		if slices.ContainsFunc(parts, func(p userdata.Part) bool { return p.MediaType == userdata.TypeShellScript }) {
			pods = max(pods, nodeconfig.DefaultMaxPods)
		}
	}
	return min(max(int(pods), 1), machine.MaxPods)
}
