// SPDX-License-Identifier: Apache-2.0

// Package devicemount mounts file systems of block devices for programs on a machine with ids of its own, whose kernel
// lets nobody there mount them.
//
// Process number one of the machine hears of each mount of a new file system before it is made
// (userns.ConfineListening). All but those of a few types it hands back to the kernel at once. For these it opens the
// device and the place as the caller would, asks the host for a mount of the device, puts that there, and tells the
// caller that it is done. It has no rights but those of root on the machine, and the host believes nothing that it
// says.
//
// What happens if
//
//	the service on the host is away      mounts of devices wait for it for some seconds, and fail with EAGAIN; all others go on
//	the caller may not mount             the kernel refuses it, as before; nothing is asked of the host
//	the caller is killed meanwhile       nothing is mounted, or it has gone with its namespace
//	a device or a place hangs (FUSE)     one of few mounts that are made at a time hangs with it, until the caller is killed and the file system answers
//	arguments are in memory that hangs   few calls are read at a time; the kernel answers all others meanwhile: only devices are not mounted
//	process number one ends              the machine ends
//	a container has a listener of its    the kernel knows one for each process: runc cannot start the container (EBUSY)
//	own (listenerPath of seccomp)
package devicemount
