// SPDX-License-Identifier: Apache-2.0

// Package sparsedisk keeps file systems in sparse files: an ext4 of a size of its own that takes the room of what is in
// it, and gives room back as files in it go. A file is mounted by a loop device that goes with its last mount, so there
// is nothing to detach.
//
// Nothing but what this package has made is ever mounted, and only the kernel writes to it: what is in a file system
// may be anybody's, its structure is not.
//
// What happens if
//
//	a process is killed while it makes one           the file has another name until it is whole; the next one makes it anew
//	one is killed before it has mounted the device   the kernel detaches it
//	one is killed between any other two steps        the next call finds what is there and goes on
//	the host loses its power                         the kernel replays the journal at the next mount
//	the kernel has found a mistake                   e2fsck mends it before the next mount, if nobody has to be asked
//	a program on the host is in it when it goes      nobody finds it any more; device and room go when that program has left
package sparsedisk
