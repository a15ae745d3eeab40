// SPDX-License-Identifier: Apache-2.0

// Package loopservice attaches files, and mounts file systems of devices, for machines with ids of their own: it is the
// host's side of packages losetup and devicemount.
//
// It trusts nothing that a machine says. A request is one line of bounded length; a file comes open, so no path of a
// machine is followed and nothing is opened with the host's rights; a device is named only to be detached, and is one
// of the machine's own then or none. A mount goes to the machine open, which puts it where it may.
//
// What happens if
//
//	a machine asks and never ends its request   the connection is closed after some seconds
//	a machine hangs as its socket is made       it has none, and no other machine waits
//	what it passes hangs (a FUSE file system)   one of its few connections hangs with it, and no other machine's
//	what it passes would hang the service       descriptors are looked at before they become files: package os would poll one of FUSE
//	a machine asks without end                  its lines of the log are cut, and counted; other machines are heard
//	a file system is checked for long           the same: each machine has one checked at a time
//	the service is killed                       devices stay attached; its successor listens again, and finds them by their names
//	a machine ends                              its devices are detached when the provider has ended it
//	a program of the host detaches a device     the machine's node of it is withdrawn within some seconds
package loopservice
