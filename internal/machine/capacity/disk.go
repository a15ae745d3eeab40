// SPDX-License-Identifier: Apache-2.0

package capacity

import "fmt"

const (
	// diskMin is what a cluster needs to start: etcd refuses to write long before a disk is full to the last byte.
	diskMin = 1 << 30
	// evictionShare of the disk must be free, or kubelets evict pods (nodefs.available in their configuration), in
	// percent.
	evictionShare = 10
)

// Disk returns an error if the file system of a state directory has too little space left for a cluster. path names it
// in the error.
func Disk(path string, available, total uint64) error {
	if available < diskMin {
		return fmt.Errorf("the file system of %s has %d MiB left, and a cluster needs %d MiB to start: free some space, or choose another --state-dir", path, available>>20, diskMin>>20)
	}
	if available*100 < total*evictionShare {
		return fmt.Errorf("the file system of %s has %d %% left, and kubelets evict pods below %d %%: free some space, or choose another --state-dir", path, available*100/total, evictionShare)
	}
	return nil
}
