// SPDX-License-Identifier: Apache-2.0

package takedown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/plane/planeid"
	"muster.dev/muster/internal/platform/removetree"
	"muster.dev/muster/internal/platform/statedir"
)

// Delete removes everything of a cluster whose processes have ended: machines with their mounts and cgroups, the VPC,
// and every file. Files that muster did not make stay, and so does their directory. The directories on which file
// systems are mounted are emptied and stay: they are returned.
func Delete(ctx context.Context, dir statedir.Dir) (mounted []string, err error) {
	if err := deleteMachines(ctx, dir); err != nil {
		return nil, err
	}
	found, err := os.ReadDir(string(dir))
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("reading state directory to remove: %w", err)
	}
	for _, entry := range found {
		if !statedir.Owns(entry.Name()) {
			continue
		}
		path := filepath.Join(string(dir), entry.Name())
		err := removetree.RemoveAll(path)
		switch {
		case err != nil && emptyMount(path, err):
			mounted = append(mounted, path)
		case err != nil:
			return nil, fmt.Errorf("removing %s: %w", entry.Name(), err)
		}
	}
	_ = os.Remove(string(dir)) // stays if anything else is in it
	return mounted, nil
}

// emptyMount reports whether a directory could not be removed for nothing but that a file system is mounted on it.
func emptyMount(path string, err error) bool {
	left, readErr := os.ReadDir(path)
	return errors.Is(err, unix.EBUSY) && readErr == nil && len(left) == 0
}

// deleteMachines removes what machines have outside the state directory, and the networks of VPCs.
func deleteMachines(ctx context.Context, dir statedir.Dir) error {
	if !local.Possible() {
		return nil
	}
	if err := local.DiscardAll(ctx, dir); err != nil {
		return err
	}
	return errors.Join(local.ReleaseIDs(dir), planeid.Release(planeid.Etc, dir), networkrecord.RemoveVPCs(dir))
}
