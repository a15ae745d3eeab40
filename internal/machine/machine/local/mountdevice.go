// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/blockfs"
	"muster.dev/muster/internal/platform/loopdevice"
)

// MountDevice makes a mount of the file system on a block device that a machine has opened, and shows it by the
// machine's ids. The machine puts it where it likes, by its own rights, and the mount ends with the machine at the
// latest. It must be a loop device that the machine is lent, and the file system Muster's to mount (package blockfs).
// Errors wrap the errno that mount(2) has for them.
func (p *Provider) MountDevice(ctx context.Context, id string, device *os.File, fileSystem blockfs.Request) (*os.File, error) {
	if err := machine.ValidateID(id); err != nil {
		return nil, err
	}
	record, err := p.store.Get(providerName, id)
	if err != nil {
		return nil, err
	}
	if !record.IDs.Own() {
		return nil, fmt.Errorf("machine %s mounts by itself: %w", id, unix.EPERM)
	}
	number, err := mayMount(device, fileSystem.Flags&unix.MS_RDONLY != 0)
	if err != nil {
		return nil, err
	}
	// While it is open, the kernel gives its number to nothing else.
	d, err := p.lentDevice(id, number)
	if err != nil {
		return nil, err
	}
	defer p.lock("mounts/" + id)() // a check is work that the host does for the machine: one at a time
	mount, err := blockfs.Mount(ctx, device, d.Node(), fileSystem, record.IDs)
	if err != nil {
		return nil, err
	}
	if _, err := p.lentDevice(id, number); err != nil { // it was withdrawn meanwhile
		return nil, errors.Join(err, mount.Close())
	}
	return mount, nil
}

// mayMount refuses what a machine has opened and is no loop device, or not as it would be mounted, and returns the
// number of the device.
func mayMount(device *os.File, readOnly bool) (uint64, error) {
	flags, err := unix.FcntlInt(device.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return 0, fmt.Errorf("looking at the device: %w", err)
	}
	var is unix.Stat_t
	if err := unix.Fstat(int(device.Fd()), &is); err != nil {
		return 0, fmt.Errorf("looking at the device: %w", err)
	}
	access := flags & unix.O_ACCMODE
	switch {
	case is.Mode&unix.S_IFMT != unix.S_IFBLK:
		return 0, fmt.Errorf("it is not a block device: %w", unix.ENOTBLK)
	case !loopdevice.IsDeviceNumber(is.Rdev):
		return 0, fmt.Errorf("device %d:%d is not a loop device: %w", unix.Major(is.Rdev), unix.Minor(is.Rdev), unix.EPERM)
	case flags&unix.O_PATH != 0 || access != unix.O_RDWR && (access != unix.O_RDONLY || !readOnly):
		return 0, fmt.Errorf("the device must be open for reading and writing, or for reading what is mounted read-only: %w", unix.EACCES)
	}
	return is.Rdev, nil
}

// lentDevice finds one of the devices that a machine is lent, by its number.
func (p *Provider) lentDevice(id string, number uint64) (loopdevice.Device, error) {
	lent, err := lentIn(p.lentTo(id))
	if err != nil {
		return loopdevice.Device{}, err
	}
	refused := fmt.Errorf("device %d:%d is not lent to machine %s: %w", unix.Major(number), unix.Minor(number), id, unix.EPERM)
	is := func(one uint64) bool { return one == number }
	if !slices.ContainsFunc(slices.Collect(maps.Values(lent)), is) {
		return loopdevice.Device{}, refused
	}
	all, err := loopdevice.List()
	if err != nil {
		return loopdevice.Device{}, err
	}
	at := slices.IndexFunc(all, func(d loopdevice.Device) bool {
		return is(loopdevice.DeviceNumber(d.Number)) && strings.HasPrefix(d.Name, "muster-") && !d.Detaching
	})
	if at < 0 {
		return loopdevice.Device{}, refused
	}
	return all[at], nil
}
