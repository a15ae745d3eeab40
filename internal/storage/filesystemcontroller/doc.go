// SPDX-License-Identifier: Apache-2.0

// Package filesystemcontroller is the controller of FileSystems: it makes the directory of each FileSystem, and the
// default FileSystem of the account.
//
//	made       directory, then the condition Ready
//	deleted    waits until no AccessPoint or VolumeSnapshot names it, says so in the condition Ready, then removes it with its data
//
// The data of a snapshot is removed when its VolumeSnapshot is deleted. Data without a VolumeSnapshot stays (see
// removeSnapshots).
//
// While the host's disk has less room left than a reserve, each FileSystem has the condition DiskPressure.
//
// It trusts the management plane. A file system that an AccessPoint or VolumeSnapshot names is never removed. If a
// service is killed while it removes a file system, the next service removes the rest at its start.
package filesystemcontroller
