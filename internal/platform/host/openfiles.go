// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"strings"

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

// FileTable is how many files all programs of this host may have open together, for people to read: "not known" if the
// kernel does not say it. Programs with CAP_SYS_ADMIN on the host may open more (fs/file_table.c, alloc_empty_file).
func FileTable() string {
	raw, err := os.ReadFile("/proc/sys/fs/file-max")
	if err != nil {
		return "not known"
	}
	return strings.TrimSpace(string(raw))
}
