// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Inotify counts how many inotify instances this user can still have, up to most, by taking them and giving them back:
// the kernel tells nobody how many are left of fs.inotify.max_user_instances (inotify(7)).
func Inotify(most int) (left int, err error) { return inotifyLeft(most, unix.InotifyInit1) }

// InotifyLimit is how many inotify instances a user may have, for people to read: "not known" if the kernel does not
// say it.
func InotifyLimit() string {
	raw, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return "not known"
	}
	return strings.TrimSpace(string(raw))
}

func inotifyLeft(most int, open func(flags int) (fd int, err error)) (int, error) {
	var held []int
	defer func() {
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}()
	for len(held) < most {
		fd, err := open(unix.IN_CLOEXEC)
		if errors.Is(err, unix.EMFILE) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("asking for an inotify instance: %w", err)
		}
		held = append(held, fd)
	}
	return len(held), nil
}
