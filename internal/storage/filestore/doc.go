// SPDX-License-Identifier: Apache-2.0

// Package filestore keeps the directories of file systems and their volumes on the host, below one directory:
//
//	FILESYSTEM/data       what clusters see of a file system
//	FILESYSTEM/snapshots  snapshots of directories and disks, which nothing is mounted from
//	FILESYSTEM/staging    directories and disks that are being made
//	trash/                those that are being removed
//
// A directory appears with its owner and mode or not at all, and goes in one step: it is made in staging and removed
// from the trash. Sweep removes what an earlier process of the service left in staging and trash.
//
// A copy of a directory or disk shares its content with what it was made of, where the host's file system can, and is
// not made where it cannot.
//
// It trusts no name in a file system: pods write there. A path is followed name by name, and never through a symbolic
// link or into another file system, so that a volume cannot show what is not below its own directory.
package filestore
