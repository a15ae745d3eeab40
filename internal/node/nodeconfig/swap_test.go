// SPDX-License-Identifier: Apache-2.0

package nodeconfig_test

import (
	"testing"

	"muster.dev/muster/internal/node/nodeconfig"
)

func TestSwapIsAllowedByTheConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kubelet nodeconfig.Kubelet
		want    bool
	}{
		"nothing said":         {nodeconfig.Kubelet{}, false},
		"allowed":              {nodeconfig.Kubelet{Config: map[string]any{"failSwapOn": false}}, true},
		"not allowed":          {nodeconfig.Kubelet{Config: map[string]any{"failSwapOn": true}}, false},
		"a flag":               {nodeconfig.Kubelet{Flags: []string{"--v=2", "--fail-swap-on=false"}}, true},
		"a flag wins":          {nodeconfig.Kubelet{Config: map[string]any{"failSwapOn": false}, Flags: []string{"--fail-swap-on"}}, false},
		"the last flag wins":   {nodeconfig.Kubelet{Flags: []string{"--fail-swap-on=true", "--fail-swap-on=false"}}, true},
		"another flag":         {nodeconfig.Kubelet{Flags: []string{"--fail-swap-on-not=false"}}, false},
		"what is neither word": {nodeconfig.Kubelet{Config: map[string]any{"failSwapOn": "false"}}, false},
	} {
		if got := c.kubelet.SwapAllowed(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
