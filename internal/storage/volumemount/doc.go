// SPDX-License-Identifier: Apache-2.0

// Package volumemount mounts volumes on the machines of this host: directories of file systems, and disks as block
// devices. A caller names a volume and never opens it, so what it asks for can come from elsewhere (package hostagent).
//
// It trusts its caller about who may have which volume, and of machines nothing: it opens what is mounted, and the
// machine puts it at the path by its own rights. The file behind a loop device says whose it is and the machines' mounts
// say whether it is used, so a device is neither lost nor left by a crash.
//
// A machine can make its paths never answer. No lock that other machines wait for is held while something is done on a
// machine.
package volumemount
