// SPDX-License-Identifier: Apache-2.0

package planeid

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/seclude"
	"muster.dev/muster/internal/platform/statedir"
)

// Etc is where users of this host are reserved.
const Etc = "/etc"

// programs returns what components run that have users of their own, as paths below the directory of Muster's programs.
func programs() []string {
	all := []string{component.KarpenterProgram, "etcd", "muster", "muster-certificate-controller", "muster-plane-front", "muster-token-signer", "muster-webhook-proxy"}
	for _, r := range release.All() {
		all = append(all, r.PlanePrograms()...)
	}
	return all
}

// Prepare reserves the users of the host that components of clusters run as; their programs are in a directory. The
// note says in one line why components run as this user instead: an installation from before goes on where components
// cannot have users.
func Prepare(dir statedir.Dir, binDir string) (note string) {
	if !host.AsRoot() {
		return "muster does not run as root"
	}
	err := mayRun(binDir)
	if err == nil {
		err = seclude.Try()
	}
	if err == nil {
		err = Reserve(Etc, dir)
	}
	if err != nil {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return ""
}

// mayRun reports which program other users may not run, whatever directory it is in.
func mayRun(dir string) error {
	const others fs.FileMode = 0o005
	for _, name := range programs() {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&others != others { // other checks tell of a missing program
			return fmt.Errorf("users may not run %s: `chmod o+rx %s`, then `muster down` and `muster up`", path, path)
		}
	}
	return nil
}
