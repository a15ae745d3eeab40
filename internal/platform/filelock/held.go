// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Hold takes the lock of a file, which it makes if need be and which stays, or returns an error that is ErrTaken. The
// directory of the file must be closed to others. The kernel drops the lock with the process, however it ends. The
// holder's name is written into the file, for others to read ([Holder]).
func Hold(path, holder string) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, ErrTaken)
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	_ = say(file, holder) // a full disk keeps nobody from its lock
	return func() { _ = file.Close() }, nil
}
