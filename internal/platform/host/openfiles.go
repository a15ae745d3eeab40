// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// OpenFiles is the hard limit of open files of this process; 0 if it may raise that (CAP_SYS_RESOURCE).
func OpenFiles() (uint64, error) {
	if may, err := Capable(unix.CAP_SYS_RESOURCE); err != nil || may {
		return 0, err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	return limit.Max, nil
}
