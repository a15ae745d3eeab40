// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/nodeshell"
)

// mountRaise lets the group wheel of a machine that people log in to become its root, which sudo does there. The host's own sudo cannot: the
// kernel gives nobody the rights of an owner whom the machine has no id for. A copy of setpriv(1) is in a file system in memory that the
// machine's own user namespace has mounted, so that its rights are those of the machine's root and count for nothing outside of it.
func mountRaise(order bootOrder) error {
	if order.Record.Key.IsZero() {
		return nil
	}
	program, err := os.ReadFile(nodeshell.RaiseSource)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // sudo says so
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(nodeshell.RaiseDir, 0o750); err != nil {
		return err
	}
	options := fmt.Sprintf("mode=750,gid=%d,size=1m", nodeshell.WheelID)
	if err := unix.Mount("tmpfs", nodeshell.RaiseDir, "tmpfs", unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mounting %s: %w", nodeshell.RaiseDir, err)
	}
	if err := os.WriteFile(nodeshell.Raise, program, 0o600); err != nil { //nolint:gosec // G703: a constant
		return err
	}
	if err := os.Chown(nodeshell.Raise, 0, nodeshell.WheelID); err != nil {
		return err
	}
	if err := os.Chmod(nodeshell.Raise, 0o750|fs.ModeSetuid); err != nil {
		return err
	}
	return unix.Mount("", nodeshell.RaiseDir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NODEV, "")
}
