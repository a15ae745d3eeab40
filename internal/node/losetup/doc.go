// SPDX-License-Identifier: Apache-2.0

// Package losetup is losetup(8) of a machine with ids of its own: the command line, and the way in which it asks the
// host.
//
// Such a machine has no part in the driver of loop devices, whose numbers are those of the host and of all machines.
// The command opens the file, by the rights of whoever calls it, and passes it open to the service on the host, which
// attaches it and lends the machine a node of the device. The kubelet calls it for each block device that a pod uses,
// and people do.
//
// Process number one asks by the same socket for mounts of devices (package devicemount).
//
// It trusts the socket, which root on the machine could make, too: whoever is that needs no more rights. The host's
// answers have a size limit. Options that would name a device before it is attached, or change one that is, are refused
// with what to do instead.
package losetup
