// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmountBelow unmounts what is mounted at a directory's contents, the innermost first, and makes sure that nothing is
// left: removing a tree with a mount in it removes the content behind the mount.
func unmountBelow(dir string) error {
	mounts, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if err := unix.Unmount(mount, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmounting %s: %w", mount, err)
		}
	}
	left, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%s is mounted again and again; find out by whom (findmnt), and run this again", left[0])
	}
	return nil
}

func mountsBelow(dir string) ([]string, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading what is mounted: %w", err)
	}
	return parseMounts(string(raw), dir), nil
}

// mountPoint reports whether something is mounted at a directory.
func (d disk) mountPoint(path string) (bool, error) {
	place := d.at(path)
	mounts, err := mountsBelow(filepath.Dir(place))
	return slices.Contains(mounts, place), err
}

// parseMounts finds mount points inside a directory in /proc/PID/mountinfo (proc_pid_mountinfo(5)), the newest first.
func parseMounts(mountinfo, dir string) []string {
	var mounts []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if point := unescape(fields[4]); strings.HasPrefix(point, strings.TrimSuffix(dir, "/")+"/") {
			mounts = append(mounts, point)
		}
	}
	slices.Reverse(mounts)
	return mounts
}

// unescape reads a path in which blanks, line breaks and backslashes are written in octal.
func unescape(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+4 <= len(path) {
			if code, err := strconv.ParseUint(path[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
