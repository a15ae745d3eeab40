// SPDX-License-Identifier: Apache-2.0

package local

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
)

// A machine with ids of its own can make no device files. A block device that it is to use is lent to it: the service
// makes a node of that device alone, which belongs to the machine's root, in a directory of the machine's that the
// machine does not see, and mounts it there. A node that is there means that the device is used. Nobody detaches a
// device before its nodes are withdrawn: otherwise the machine could open what the next program of the host attaches
// under the same number.

// lentDir has the nodes, below a machine's directory. It is made anew when a machine boots whose programs cannot ask
// the driver of loop devices (userns.Confine): one that was booted before there was that filter has no such directory,
// and is lent nothing.
const lentDir = "devices"

// lentVolume begins the names of nodes of volumes; others are of loop devices that the machine has attached itself.
const lentVolume = "volume-"

// lentAt is the name of the node that is mounted at a path of the machine's.
func lentAt(target string) string {
	return fmt.Sprintf("%s%x", lentVolume, sha256.Sum256([]byte(target)))
}

func lentLoop(number int) string { return fmt.Sprintf("loop%d", number) }

// beginLending makes a machine's directory for nodes as it boots, without those of the boot before.
func beginLending(machineDir string, ids userns.IDs) error {
	dir := filepath.Join(machineDir, lentDir)
	if err := withdrawAll(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil || !ids.Own() { //nolint:gosec // G703: a machine's own directory
		return err
	}
	return os.Mkdir(dir, 0o700) //nolint:gosec // G703: a machine's own directory
}

// lend makes the node of a device by a name, and reports whether it was not there before.
func lend(dir, name string, device uint64, owner int) (node *os.File, made bool, err error) {
	path := filepath.Join(dir, name)
	for range 2 {
		err = unix.Mknod(path, unix.S_IFBLK, int(device)) //nolint:gosec // G115: a device number
		if made = err == nil; !made && !errors.Is(err, fs.ErrExist) {
			break
		}
		var is uint64
		if is, err = numberOf(path); err == nil && is == device {
			break
		}
		if err = withdraw(path); err != nil { // another device's, from before
			return nil, false, err
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, errors.New("the machine was booted by an earlier Muster and cannot have block devices before it boots again: stop and start it, or replace it")
	case errors.Is(err, fs.ErrPermission):
		return nil, false, fmt.Errorf("this host lets nobody make device files (%w), as in a container without CAP_MKNOD: machines with a user namespace of their own cannot have block devices here", err)
	case err != nil:
		return nil, false, fmt.Errorf("making %s: %w", path, err)
	}
	if err := errors.Join(os.Chown(path, owner, owner), os.Chmod(path, 0o600)); err != nil {
		return nil, made, err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, made, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), made, nil
}

// numberOf is the number of the device that a node is of.
func numberOf(path string) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return 0, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, fmt.Errorf("%s is not a block device", path)
	}
	return stat.Rdev, nil
}

// withdraw takes a node away. Wherever the machine still has it mounted, or keeps hold of it, it opens nothing there
// from now on: it belongs to the host's root, over whose files nobody on the machine has any rights.
func withdraw(path string) error {
	err := os.Chmod(path, 0) //nolint:gosec // G703: a machine's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(err, os.Chown(path, 0, 0)); err != nil { //nolint:gosec // G703: a machine's own directory
		return fmt.Errorf("withdrawing a device: %w", err)
	}
	return os.Remove(path) //nolint:gosec // G703: a machine's own directory
}

// lentIn returns the nodes in a directory by their names, with the numbers of their devices; it is empty if the
// directory does not exist.
func lentIn(dir string) (map[string]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for devices that are lent: %w", err)
	}
	all := map[string]uint64{}
	for _, entry := range entries {
		number, err := numberOf(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[entry.Name()] = number
	}
	return all, nil
}

func withdrawAll(dir string) error {
	all, err := lentIn(dir)
	if err != nil {
		return err
	}
	var errs []error
	for name := range all {
		errs = append(errs, withdraw(filepath.Join(dir, name)))
	}
	return errors.Join(errs...)
}

// lentDirs are the directories with nodes of all machines, by their ids.
func lentDirs(dir statedir.Dir) (map[string]string, error) {
	entries, err := os.ReadDir(dir.Machines())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for machines: %w", err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		if machine.ValidateID(entry.Name()) == nil {
			all[entry.Name()] = filepath.Join(dir.Machine(entry.Name()), lentDir)
		}
	}
	return all, nil
}

// WithdrawLoops takes the nodes of loop devices away from all machines. It comes before these devices are detached.
func (p *Provider) WithdrawLoops(numbers ...int) error {
	gone := map[uint64]bool{}
	for _, number := range numbers {
		gone[loopdevice.DeviceNumber(number)] = true
	}
	dirs, err := lentDirs(p.config.State)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		all, err := lentIn(dir)
		errs = append(errs, err)
		for name, number := range all {
			if gone[number] {
				errs = append(errs, withdraw(filepath.Join(dir, name)))
			}
		}
	}
	return errors.Join(errs...)
}

// lentVolumes adds the numbers of loop devices of volumes that machines are lent. Machines that do not run have what
// they were lent withdrawn: whatever still runs of such a machine then opens nothing, even if it was not seen.
func (p *Provider) lentVolumes(numbers map[int]bool) error {
	dirs, err := lentDirs(p.config.State)
	if err != nil {
		return err
	}
	for id, dir := range dirs {
		all, err := lentIn(dir)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			continue
		}
		if _, running, err := p.find(id); err != nil {
			return err
		} else if !running {
			if err := withdrawAll(dir); err != nil {
				return err
			}
			continue
		}
		for name, number := range all {
			if strings.HasPrefix(name, lentVolume) {
				numbers[int(unix.Minor(number))] = true
			}
		}
	}
	return nil
}
