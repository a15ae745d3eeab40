// SPDX-License-Identifier: Apache-2.0

// Package filesystemcontroller is the controller of FileSystems: it makes the directory of each, and the one that every
// account has.
//
//	made       directory, then the condition Ready
//	deleted    waits until no AccessPoint or VolumeSnapshot names it, says so in the condition Ready, then removes it with its data
//
// The data of a snapshot is removed when its VolumeSnapshot is deleted. Data without a VolumeSnapshot stays (see
// removeSnapshots).
//
// While the host's disk has less left than a reserve, each has the condition DiskPressure.
//
// It trusts the management plane. A file system that is named by one is never removed; what a service that was killed
// left half removed goes at the next start.
package filesystemcontroller
