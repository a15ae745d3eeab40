// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

func TestUnlimitedMemory(t *testing.T) {
	t.Parallel()
	memories := map[string]runner.Memory{
		"starting":   {},
		"limited":    {Limit: 4 << 30},
		"ended once": {Limit: 512 << 20, Ended: 1},
		"in use":     {Limit: 1 << 30, Problem: "a limit of 512 MiB cannot take effect while 600 MiB are in use; the limit stays 1024 MiB"},
		"unlimited":  {Problem: "that takes root, and muster does not run as root"},
	}
	of := func(name string) Cluster {
		return Cluster{Components: []runner.Status{{Name: component.Etcd}, {Name: component.APIServer, Memory: memories[name]}}}
	}
	for _, name := range []string{"starting", "limited", "in use", "ended once"} {
		if got := UnlimitedMemory([]Cluster{{}, of(name)}); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := UnlimitedMemory([]Cluster{of("limited"), of("unlimited"), of("unlimited")}); got != "that takes root, and muster does not run as root" {
		t.Errorf("%q", got)
	}
}
