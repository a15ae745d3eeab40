// SPDX-License-Identifier: Apache-2.0

package blockfs

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Types are the file systems that can be mounted, as mount(2) has them.
var Types = []string{"ext2", "ext3", "ext4", "xfs"}

// Request is what is asked for, as by mount(2).
type Request struct {
	// Type is one of Types.
	Type string `json:"type"`
	// Flags are of mount(2). MS_NOSUID and MS_NODEV are always set.
	Flags uint64 `json:"flags,omitempty"`
	// Options are those of the file system, separated by commas.
	Options string `json:"options,omitempty"`
}

// mayFlags are the flags of mount(2) that can be asked for.
const mayFlags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_SYNCHRONOUS | unix.MS_DIRSYNC | unix.MS_NOATIME | unix.MS_NODIRATIME |
	unix.MS_RELATIME | unix.MS_STRICTATIME | unix.MS_LAZYTIME | unix.MS_SILENT

// mayOptions are what may be asked of a file system by those who write it: nothing that names another device or a file
// of the host's, or that has the host end when the file system is damaged.
func mayOptions(kind string) []string {
	if kind == "xfs" {
		return []string{"nouuid", "discard", "nodiscard", "norecovery", "inode32", "inode64", "attr2", "noquota", "largeio", "swalloc", "wsync"}
	}
	return []string{
		"errors=remount-ro", "errors=continue", "discard", "nodiscard", "noload", "norecovery", "data=ordered", "data=journal", "data=writeback", "barrier", "barrier=1",
		"acl", "user_xattr", "delalloc", "nodelalloc", "init_itable", "noinit_itable", "minixdf", "bsddf", "auto_da_alloc",
	}
}

// plan is a request that may be done.
type plan struct {
	kind       string // of the kernel's drivers
	readOnly   bool
	options    []string // of the file system
	attributes uint64   // of the mount
}

// decide says what is mounted for a request, or why it is not.
func decide(r Request) (plan, error) {
	if !slices.Contains(Types, r.Type) {
		return plan{}, fmt.Errorf("file system %q: must be one of %s: %w", r.Type, strings.Join(Types, ", "), unix.ENODEV)
	}
	if more := r.Flags &^ mayFlags; more != 0 {
		return plan{}, fmt.Errorf("flags %#x of mount(2) cannot be asked for: %w", more, unix.EINVAL)
	}
	p := plan{kind: "ext4", readOnly: r.Flags&unix.MS_RDONLY != 0, attributes: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if r.Type == "xfs" {
		p.kind = "xfs"
	}
	may := mayOptions(p.kind)
	for option := range strings.SplitSeq(r.Options, ",") {
		switch {
		case option == "" || strings.HasPrefix(option, "errors=") && slices.Contains(may, option): // damage is always answered in the same way
		case slices.Contains(may, option):
			p.options = append(p.options, option)
		default:
			return plan{}, fmt.Errorf("option %q of %s cannot be asked for, only %s: %w", option, r.Type, strings.Join(may, ", "), unix.EINVAL)
		}
	}
	for flag, option := range map[uint64]string{unix.MS_SYNCHRONOUS: "sync", unix.MS_DIRSYNC: "dirsync", unix.MS_LAZYTIME: "lazytime"} {
		if r.Flags&flag != 0 {
			p.options = append(p.options, option)
		}
	}
	if p.readOnly {
		p.options = append(p.options, "ro")
		p.attributes |= unix.MOUNT_ATTR_RDONLY
	}
	if p.kind == "xfs" {
		p.options = append(p.options, "nouuid") // of others with the same, on the same kernel, nobody knows here
	} else {
		p.options = append(p.options, "errors=remount-ro") // and never panic, which the file system itself could ask for
	}
	slices.Sort(p.options)
	p.options = slices.Compact(p.options)
	p.attributes |= attributesOf(r.Flags)
	return p, nil
}

// attributesOf are the attributes of a mount for flags of mount(2).
func attributesOf(flags uint64) (attributes uint64) {
	for flag, attribute := range map[uint64]uint64{unix.MS_NOEXEC: unix.MOUNT_ATTR_NOEXEC, unix.MS_NODIRATIME: unix.MOUNT_ATTR_NODIRATIME} {
		if flags&flag != 0 {
			attributes |= attribute
		}
	}
	switch { // as mount(2) has it: one of these
	case flags&unix.MS_STRICTATIME != 0:
		return attributes | unix.MOUNT_ATTR_STRICTATIME
	case flags&unix.MS_NOATIME != 0:
		return attributes | unix.MOUNT_ATTR_NOATIME
	}
	return attributes
}
