// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"muster.dev/muster/internal/platform/atomicfile"
)

// layoutVersion is the version of what lies where in a state directory. A change of the layout counts it up and
// converts the directory.
//
//	1: one etcd for both planes (no file said so)
//	2: an etcd for each plane; was never released
//	3: an account with many clusters, each in a directory of its own; was never released
//	4: VPCs with subnets, the network of each cluster in a file, an audit log for each instance of an API server
const layoutVersion = 4

// firstConfig is where a state directory of version 1 kept its one cluster.
const firstConfig = "muster.yaml"

// CheckLayout refuses a state directory in use whose layout is another version's.
func CheckLayout(dir Dir) error {
	raw, err := os.ReadFile(dir.Layout())
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(string(dir), firstConfig)); err == nil {
			return older(dir)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the layout version of state directory %s: %w", dir, err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	switch {
	case err == nil && version > 0 && version < layoutVersion:
		return older(dir)
	case err != nil || version < layoutVersion:
		return fmt.Errorf("%s is damaged: it holds %q and must hold %d; restore it from a backup", dir.Layout(), strings.TrimSpace(string(raw)), layoutVersion)
	case version > layoutVersion:
		return fmt.Errorf("state directory %s has layout version %d, and this Muster knows %d: use the Muster that made it, or a newer one", dir, version, layoutVersion)
	}
	return nil
}

func older(dir Dir) error {
	return fmt.Errorf("state directory %s was made by an earlier Muster and cannot be converted: remove it with `muster down --delete`, or choose another --state-dir", dir)
}

// MarkLayout says which layout a new state directory has. It comes before everything else that is kept there.
func MarkLayout(dir Dir) error {
	return atomicfile.Write(dir.Layout(), []byte(strconv.Itoa(layoutVersion)+"\n"), 0o600)
}
