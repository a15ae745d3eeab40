// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/release"
)

// programs are what must lie beside muster's own program for a cluster to run.
var programs = slices.Concat(
	[]string{"etcd", "generic-apiserver"}, release.Default().PlanePrograms(),
	[]string{"muster-certificate-controller", "muster-token-signer", "muster-webhook-proxy"},
)

// machinePrograms are what a local machine needs besides. `make up` builds these and programs before it starts a
// cluster, and all else afterwards (tools/build.sh).
var machinePrograms = slices.Concat(
	[]string{"containerd", "containerd-shim-runc-v2", "ctr"}, release.Default().MachinePrograms(),
	[]string{
		"muster-egress", "runc",
		"cni/bridge", "cni/host-local", "cni/loopback", "cni/portmap",
		"images/coredns.tar", "images/pause.tar", "images/workload.tar",
	},
)

// FindPrograms is the directory of muster's own program, in which everything else is looked for, and checks that all is
// there.
func FindPrograms() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding muster's own program: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", fmt.Errorf("finding the directory of muster's own program: %w", err)
	}
	dir := filepath.Dir(self)
	wanted := programs
	if local.Possible() {
		wanted = append(slices.Clip(wanted), machinePrograms...)
	}
	var missing []string
	for _, name := range wanted {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("%s lacks %s: run `make build`, which makes them", dir, strings.Join(missing, ", "))
	}
	return dir, nil
}
