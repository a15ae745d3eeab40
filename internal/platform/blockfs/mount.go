// SPDX-License-Identifier: Apache-2.0

package blockfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/userns"
)

// Mount makes a mount of the file system on a block device, which is at a path of the host's: the device cannot go
// while it is open. The mount is not attached to a path yet: move_mount(2) attaches it, and the kernel unmounts it when
// the last descriptor and path are gone. The error wraps the errno that mount(2) has for it.
func Mount(ctx context.Context, device *os.File, path string, r Request, ids userns.IDs) (*os.File, error) {
	p, err := decide(r)
	if err != nil {
		return nil, err
	}
	if !ids.Own() {
		return nil, fmt.Errorf("whoever has the host's ids mounts by themselves: %w", unix.EPERM)
	}
	number, err := numberOf(device)
	if err != nil {
		return nil, err
	}
	free, err := unclaimed(device)
	if err != nil {
		return nil, err
	}
	if err := recognize(device, p.kind); err != nil {
		return nil, err
	}
	patience := time.Duration(0) // with who has the device for themselves and has not mounted it: nothing was checked
	if free {
		if err := check(ctx, device, p, ids); err != nil {
			return nil, err
		}
		patience = settlePatience
	}
	mount, err := p.mount(path, number, patience)
	if err != nil {
		return nil, err
	}
	defer func() { _ = mount.Close() }()
	namespace, err := ids.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = namespace.Close() }()
	shown := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace.Fd())}
	if err := unix.MountSetattr(int(mount.Fd()), "", unix.AT_EMPTY_PATH, &shown); err != nil {
		return nil, fmt.Errorf("showing the file system by other ids: %w", err)
	}
	return ids.Lock(mount)
}

func numberOf(device *os.File) (uint64, error) {
	var is unix.Stat_t
	if err := unix.Fstat(int(device.Fd()), &is); err != nil {
		return 0, fmt.Errorf("looking at the device: %w", err)
	}
	if is.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, fmt.Errorf("it is not a block device: %w", unix.ENOTBLK)
	}
	return is.Rdev, nil
}

// unclaimed reports whether nobody has the device for themselves, as one that is mounted is had.
func unclaimed(device *os.File) (bool, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", device.Fd()), unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EBUSY) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening the device: %w", err)
	}
	return true, unix.Close(fd)
}

// settlePatience is how long it is waited for a device that somebody else has open for themselves: programs that look
// at devices do so for a moment.
const settlePatience, settleInterval = 2 * time.Second, 20 * time.Millisecond

// mount mounts the file system of a device at a path, which has to have a number, and waits for a while for who has the
// device.
func (p plan) mount(path string, number uint64, patience time.Duration) (*os.File, error) {
	for until := time.Now().Add(patience); ; {
		mount, err := p.mountOnce(path)
		if errors.Is(err, unix.EBUSY) && time.Now().Before(until) {
			<-time.After(settleInterval)
			continue
		}
		if err != nil {
			return nil, err
		}
		var is unix.Stat_t
		if err := unix.Fstat(int(mount.Fd()), &is); err != nil || is.Dev != number {
			return nil, errors.Join(fmt.Errorf("%s is not the device: %w", path, unix.ENODEV), err, mount.Close())
		}
		return mount, nil
	}
}

func (p plan) mountOnce(path string) (*os.File, error) {
	fs, err := unix.Fsopen(p.kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", p.kind, err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigSetString(fs, "source", path); err != nil {
		return nil, fmt.Errorf("mounting %s: %w", path, err)
	}
	for _, option := range p.options {
		key, value, ok := strings.Cut(option, "=")
		if ok {
			err = unix.FsconfigSetString(fs, key, value)
		} else {
			err = unix.FsconfigSetFlag(fs, key)
		}
		if err != nil {
			return nil, fmt.Errorf("mounting %s with %s: %w", path, option, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("mounting %s: %w", path, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, int(p.attributes)) //nolint:gosec // G115: a set of flags
	if err != nil {
		return nil, fmt.Errorf("mounting %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
