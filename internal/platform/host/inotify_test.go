// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInotifyLeft(t *testing.T) {
	for name, test := range map[string]struct {
		left, want int
		err        error // of the one after those that are left
		says       string
	}{
		"enough":     {left: 9, want: 8},
		"just":       {left: 8, want: 8, err: unix.EMFILE},
		"too few":    {left: 3, want: 3, err: unix.EMFILE},
		"no memory":  {left: 3, err: unix.ENOMEM, says: "asking for an inotify instance: cannot allocate memory"},
		"no inotify": {err: unix.ENOSYS, says: "asking for an inotify instance: "},
	} {
		before, given := held(t), 0
		got, err := inotifyLeft(8, func(int) (int, error) {
			if given == test.left {
				return -1, test.err
			}
			given++
			return unix.Eventfd(0, unix.EFD_CLOEXEC) // in place of an instance: the host may have none left
		})
		if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
		if after := held(t); after != before {
			t.Errorf("%s: %d are held, %d were before", name, after, before)
		}
	}
}

func TestInotifyLimit(t *testing.T) {
	if limit, err := strconv.Atoi(InotifyLimit()); err != nil || limit < 1 {
		t.Errorf("the limit is %q", InotifyLimit())
	}
}

// held counts the stand-ins that this process holds.
func held(t *testing.T) (n int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if link, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.Contains(link, "eventfd") {
			n++
		}
	}
	return n
}
