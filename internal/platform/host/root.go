// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// IsOwnRoot reports whether an open directory is the root directory of the calling process. The first process of a
// machine has the host's until it has built its own and moved into that: what were done in it would be done to the
// host.
func IsOwnRoot(directory int) (bool, error) {
	var its, own unix.Stat_t
	if err := errors.Join(unix.Fstat(directory, &its), unix.Stat("/", &own)); err != nil {
		return false, fmt.Errorf("looking at a root directory: %w", err)
	}
	return its.Dev == own.Dev && its.Ino == own.Ino, nil
}

// AsRoot reports whether this process runs as root, be it of a user namespace.
func AsRoot() bool { return os.Geteuid() == 0 }
