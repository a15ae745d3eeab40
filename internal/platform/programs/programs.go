// SPDX-License-Identifier: Apache-2.0

// Package programs finds the programs and files that lie beside muster's own program.
package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/internal/platform/release"
)

// Plane returns what must lie beside muster's own program for a cluster to run.
func Plane() []string {
	return slices.Concat(
		[]string{"etcd", release.Default().Program("", "generic-apiserver")}, release.Default().PlanePrograms(),
		[]string{"muster-certificate-controller", "muster-plane-front", "muster-registry", "muster-token-signer", "muster-webhook-proxy"},
	)
}

// Machine returns what a local machine needs besides. `make up` builds these and those of Plane before it starts a
// cluster, and all else afterwards (tools/build.sh).
func Machine() []string {
	return slices.Concat(
		[]string{"containerd", "containerd-shim-runc-v2", "ctr"}, release.Default().MachinePrograms(),
		[]string{
			"muster-egress", "runc",
			"cni/bridge", "cni/host-local", "cni/loopback", "cni/portmap",
			"images/coredns.tar", "images/pause.tar", "images/workload.tar",
		},
	)
}

// Unbuilt says what is to be done before a release can run, whose programs are to lie below a directory; empty if
// nothing is.
func Unbuilt(dir string, of release.Release) string {
	return of.Unbuilt(func(path string) bool {
		_, err := os.Stat(filepath.Join(dir, path))
		return err == nil
	})
}

// Dir returns the directory of muster's own program, in which everything else is looked for.
func Dir() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding muster's own program: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", fmt.Errorf("finding the directory of muster's own program: %w", err)
	}
	return filepath.Dir(self), nil
}

// Find returns the directory of muster's own program, and checks that all is there; with machines, also what local
// machines need.
func Find(machines bool) (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	wanted := Plane()
	if machines {
		wanted = append(wanted, Machine()...)
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
