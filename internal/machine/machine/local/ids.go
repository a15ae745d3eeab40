// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/subid"
	"muster.dev/muster/internal/platform/userns"
)

const (
	etc = "/etc"
	// reservedIDs are enough for 64 machines at a time (machine.Store gives each 65536).
	reservedIDs = 64 << 16
)

// IDs returns the ids of this host that are reserved for the machines of a state directory, and reserves them if none
// are.
func IDs(dir statedir.Dir) (userns.IDs, error) {
	reserved, err := subid.Reserve(etc, owner(dir), reservedIDs)
	return userns.IDs{First: reserved.First, Count: reserved.Count}, err
}

// imagesOnDisk is where a machine keeps images, unpacked. Their opaque directories are marked in another way in a user
// namespace.
const (
	imagesOnDisk = "var/lib/containerd"
	// agentData is where the machine's agent notes what it has imported.
	agentData = "var/lib/muster"
)

// isolate gives a machine that was launched without ids of its own some for the boot that follows, if it is to have
// them. It has to get its images anew.
func (p *Provider) isolate(request machine.LaunchRequest, record machine.Record) (machine.Record, error) {
	if !request.OwnIDs || record.IDs.Own() {
		return record, nil
	}
	path := filepath.Join(p.store.Path(record.ID), rootDir)
	if err := userns.Check(path); err != nil {
		if request.HostRoot {
			p.config.Log.Warn("root on the machine stays root on this host", "machine", record.ID, "error", err)
			return record, nil
		}
		return record, fmt.Errorf("giving the machine ids of its own: %w", err)
	}
	disk, err := os.OpenRoot(path)
	if err != nil {
		return record, fmt.Errorf("opening the machine's disk: %w", err)
	}
	defer func() { _ = disk.Close() }()
	if err := forgetImages(disk); err != nil {
		return record, fmt.Errorf("removing the machine's images: %w", err)
	}
	return p.store.GiveIDs(record.ID)
}

// forgetImages removes a machine's images and the marks which say that those of every machine were imported. The
// machine does not run.
func forgetImages(disk *os.Root) error {
	if err := disk.RemoveAll(imagesOnDisk); err != nil {
		return err
	}
	marks, err := fs.Glob(disk.FS(), agentData+"/imported-*")
	if err != nil {
		return err
	}
	for _, mark := range marks {
		if err := disk.RemoveAll(mark); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseIDs gives up the ids that are reserved for the machines of a state directory. No such machine may exist any
// more.
func ReleaseIDs(dir statedir.Dir) error {
	if _, found, err := subid.Find(etc, owner(dir)); err != nil || !found {
		return err
	}
	return subid.Release(etc, owner(dir))
}

// isReserved reports whether a user of the host is one of those that are reserved for machines of a state directory.
func isReserved(dir statedir.Dir, uid int) bool {
	reserved, found, err := subid.Find(etc, owner(dir))
	return err == nil && found && uid >= int(reserved.First) && uid-int(reserved.First) < int(reserved.Count)
}

// owner is the name by which a state directory's ids are reserved, of no user of the host.
func owner(dir statedir.Dir) string { return "muster-" + statedir.Hash(dir) }
