// SPDX-License-Identifier: Apache-2.0

// Package blockfs mounts file systems of block devices that strangers write, for user namespaces, in which nobody may:
// ext4, with ext2 and ext3, and XFS.
//
// The kernel reads what the stranger wrote, and may find it changed after it was checked. The mount options are
// Muster's own, from a list. The mount shows owners by the ids of the namespace, and is nosuid and nodev; nobody in the
// namespace can change these.
//
// What happens if
//
//	the device is mounted already        it is another mount of the same file system, which is not checked again
//	somebody has it for themselves       the error is EBUSY: it is not waited for what was not checked
//	ext4 was not unmounted               its journal is replayed before, by the program that checks it, which has no rights
//	XFS was not unmounted                it is refused as damaged: only the kernel can replay its log, and a check is worth nothing before
//	the check finds more than it mends   the error is EUCLEAN, and nothing is mounted
//	the check does not end               it is killed after some minutes
//	this process is killed               nothing is mounted; the check may run to its end
package blockfs
