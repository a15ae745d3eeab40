// SPDX-License-Identifier: Apache-2.0

package blockfs

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDecide(t *testing.T) {
	const always = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	for name, c := range map[string]struct {
		request Request
		want    plan
		err     error
	}{
		"ext4":                       {Request{Type: "ext4"}, plan{"ext4", false, []string{"errors=remount-ro"}, always}, nil},
		"ext2":                       {Request{Type: "ext2"}, plan{"ext4", false, []string{"errors=remount-ro"}, always}, nil},
		"xfs":                        {Request{Type: "xfs"}, plan{"xfs", false, []string{"nouuid"}, always}, nil},
		"read-only":                  {Request{Type: "xfs", Flags: unix.MS_RDONLY}, plan{"xfs", true, []string{"nouuid", "ro"}, always | unix.MOUNT_ATTR_RDONLY}, nil},
		"flags":                      {Request{Type: "ext4", Flags: unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_SYNCHRONOUS | unix.MS_NODEV}, plan{"ext4", false, []string{"errors=remount-ro", "sync"}, always | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOATIME}, nil},
		"each access":                {Request{Type: "ext4", Flags: unix.MS_STRICTATIME | unix.MS_NODIRATIME}, plan{"ext4", false, []string{"errors=remount-ro"}, always | unix.MOUNT_ATTR_STRICTATIME | unix.MOUNT_ATTR_NODIRATIME}, nil},
		"options":                    {Request{Type: "ext4", Options: "discard,,data=ordered,discard"}, plan{"ext4", false, []string{"data=ordered", "discard", "errors=remount-ro"}, always}, nil},
		"goes on when damaged":       {Request{Type: "ext4", Options: "errors=continue"}, plan{"ext4", false, []string{"errors=remount-ro"}, always}, nil},
		"ends the host":              {Request{Type: "ext4", Options: "errors=panic"}, plan{}, unix.EINVAL},
		"another device":             {Request{Type: "ext4", Options: "journal_dev=2049"}, plan{}, unix.EINVAL},
		"another device by its path": {Request{Type: "ext4", Options: "discard,journal_path=/dev/sda"}, plan{}, unix.EINVAL},
		"another device of XFS":      {Request{Type: "xfs", Options: "logdev=/dev/sda"}, plan{}, unix.EINVAL},
		"an option of the other":     {Request{Type: "ext4", Options: "nouuid"}, plan{}, unix.EINVAL},
		"a source":                   {Request{Type: "ext4", Options: "source=/dev/sda"}, plan{}, unix.EINVAL},
		"another flag":               {Request{Type: "ext4", Flags: 1 << 26}, plan{}, unix.EINVAL},
		"again":                      {Request{Type: "ext4", Flags: unix.MS_REMOUNT}, plan{}, unix.EINVAL},
		"another type":               {Request{Type: "btrfs"}, plan{}, unix.ENODEV},
		"none":                       {Request{}, plan{}, unix.ENODEV},
	} {
		got, err := decide(c.request)
		if !errors.Is(err, c.err) || got.kind != c.want.kind || got.readOnly != c.want.readOnly || !slices.Equal(got.options, c.want.options) || got.attributes != c.want.attributes {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
		}
	}
}
