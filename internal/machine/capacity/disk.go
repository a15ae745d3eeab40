// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"

	"muster.dev/muster/internal/platform/hostreserve"
)

// diskMin is what a cluster needs to start, in bytes: etcd refuses to write long before a disk is full to the last byte.
const diskMin = 1 << 30

// Disk returns an error if the file system of a state directory has too little space left for a cluster. path names it
// in the error. Kubelets look at the file system of their machine instead.
func Disk(path string, available, total uint64) error {
	if available < diskMin {
		return fmt.Errorf("the file system of %s has %d MiB left, and a cluster needs %d MiB to start: free some space, or choose another --state-dir", path, available>>20, diskMin>>20)
	}
	reserve := uint64(hostreserve.Of(int64(total))) //nolint:gosec // G115: disks are smaller
	if available < reserve {
		return fmt.Errorf("the file system of %s has %d MiB left, and with less than %d MiB no volumes are made and machines are stopped: free some space, or choose another --state-dir", path, available>>20, reserve>>20)
	}
	return nil
}
