// SPDX-License-Identifier: Apache-2.0

package local

import (
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/subid"
	"muster.dev/muster/internal/platform/userns"
)

const (
	etc = "/etc"
	// reservedIDs are enough for 64 machines at a time (machine.Store gives each 65536).
	reservedIDs = 64 << 16
)

// IDs returns the ids of this host that are reserved for the machines of a state directory, and reserves them if none are.
func IDs(dir statedir.Dir) (userns.IDs, error) {
	reserved, err := subid.Reserve(etc, owner(dir), reservedIDs)
	return userns.IDs{First: reserved.First, Count: reserved.Count}, err
}

// ReleaseIDs gives up the ids that are reserved for the machines of a state directory, of which there are none any more.
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
