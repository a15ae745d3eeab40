// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/statedir"
)

// ErrTooManyLoops says that a machine has all the loop devices that it may have.
var ErrTooManyLoops = errors.New("this machine has " + strconv.Itoa(loopDevices) + " loop devices, and more it may not have: detach some (losetup --detach; losetup --all lists them)")

// ErrNotAttached says that a machine has no loop device of a number.
var ErrNotAttached = errors.New("no such loop device of this machine (losetup --all lists those that it has)")

// loopName is what the loop devices of a machine with ids of its own are called, by which they are found whatever
// happens.
func loopName(dir statedir.Dir, id string) string {
	return "muster-machine-" + statedir.Hash(dir) + "-" + id
}

// Isolated are the machines that run and may ask for loop devices, and which boot of theirs it is.
func (p *Provider) Isolated() (map[string]string, error) {
	records, err := p.store.List(providerName)
	if err != nil && !errors.Is(err, machine.ErrDamaged) {
		return nil, err
	}
	all := map[string]string{}
	for _, record := range records {
		if !record.IDs.Own() {
			continue
		}
		if _, err := os.Stat(p.lentTo(record.ID)); err != nil { // an earlier Muster has booted it
			continue
		}
		if boot, running := p.Boot(record.ID); running {
			all[record.ID] = boot
		}
	}
	return all, nil
}

// Loops are the loop devices that a machine has asked for.
func (p *Provider) Loops(id string) ([]loopdevice.Device, error) {
	all, err := loopdevice.List()
	return slices.DeleteFunc(all, func(d loopdevice.Device) bool { return d.Name != loopName(p.config.State, id) }), err
}

// AttachLoop attaches a file that a machine has opened to a loop device of that machine's, /dev/loopN there. The
// service follows no path of the machine's, and the device allows nothing that the descriptor does not.
func (p *Provider) AttachLoop(id string, file *os.File, readOnly bool) (loopdevice.Device, error) {
	if err := machine.ValidateID(id); err != nil {
		return loopdevice.Device{}, err
	}
	record, err := p.store.Get(providerName, id)
	if err != nil {
		return loopdevice.Device{}, err
	}
	if !record.IDs.Own() {
		return loopdevice.Device{}, fmt.Errorf("machine %s attaches files itself", id)
	}
	only, err := p.mayAttach(id, file)
	if err != nil {
		return loopdevice.Device{}, err
	}
	// From here on until the node is there nobody may detach the device.
	defer p.lock("loops/" + id)()
	has, err := p.Loops(id)
	if err != nil {
		return loopdevice.Device{}, err
	}
	if len(has) >= loopDevices {
		return loopdevice.Device{}, ErrTooManyLoops
	}
	d, err := loopdevice.Attach(file, loopName(p.config.State, id), readOnly || only)
	if err != nil {
		return loopdevice.Device{}, err
	}
	if err := p.lendLoop(record, d); err != nil {
		return loopdevice.Device{}, errors.Join(err, p.takeBack(id, d))
	}
	return d, nil
}

// lendLoop gives a machine its loop device.
func (p *Provider) lendLoop(record machine.Record, d loopdevice.Device) error {
	node, _, err := lend(p.lentTo(record.ID), lentLoop(d.Number), loopdevice.DeviceNumber(d.Number), record.IDs.Host(0))
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }()
	return p.show(record.ID, node, d.Node(), deviceMount(false))
}

// takeBack withdraws a machine's loop device and detaches it.
func (p *Provider) takeBack(id string, d loopdevice.Device) error {
	if err := withdraw(filepath.Join(p.lentTo(id), lentLoop(d.Number))); err != nil {
		return err
	}
	return loopdevice.Detach(d)
}

// Kinds of file systems, as statfs(2) has them.
const (
	tmpfs   = 0x01021994
	fuse    = 0x65735546
	overlay = 0x794c7630
)

// mayAttach refuses what a machine has opened and no device may be of, and reports whether it is open for reading only.
// Files are of the kind of file system that the machine's disk is, or that volumes are on, which machines cannot mount
// themselves, or of memory: what is behind a device answers the kernel at once, and is not a program of the machine's,
// on which the host would wait (FUSE), alone or below an overlay.
func (p *Provider) mayAttach(id string, file *os.File) (readOnly bool, err error) {
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return false, fmt.Errorf("looking at the file: %w", err)
	}
	if flags&unix.O_PATH != 0 || flags&unix.O_ACCMODE != unix.O_RDONLY && flags&unix.O_ACCMODE != unix.O_RDWR {
		return false, errors.New("the file must be open for reading, or for reading and writing")
	}
	var kind, disk, volumes unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &kind); err != nil {
		return false, fmt.Errorf("looking at the file: %w", err)
	}
	var is unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &is); err != nil {
		return false, fmt.Errorf("looking at the file: %w", err)
	}
	if err := unix.Statfs(filepath.Join(p.store.Path(id), rootDir), &disk); err != nil {
		return false, fmt.Errorf("looking at the machine's disk: %w", err)
	}
	if err := unix.Statfs(statedir.Nearest(statedir.Dir(p.config.State.FileSystems())), &volumes); err != nil {
		return false, fmt.Errorf("looking at the disk of volumes: %w", err)
	}
	readOnly = flags&unix.O_ACCMODE == unix.O_RDONLY
	switch is.Mode & unix.S_IFMT {
	case unix.S_IFBLK:
		if !loopdevice.IsDeviceNumber(is.Rdev) {
			return false, fmt.Errorf("device %d:%d is not a loop device", unix.Major(is.Rdev), unix.Minor(is.Rdev))
		}
	case unix.S_IFREG:
		if kind.Type != tmpfs && kind.Type != disk.Type && kind.Type != volumes.Type || kind.Type == fuse || kind.Type == overlay {
			return false, errors.New("the file must be on the machine's disk, on a volume or in memory (tmpfs), not on an overlay or a FUSE file system")
		}
	default:
		return false, errors.New("it must be a regular file or a block device")
	}
	return readOnly, nil
}

// DetachLoop takes the file from a loop device that a machine has asked for. The kernel detaches an open device when
// the last program closes it.
func (p *Provider) DetachLoop(id string, number int) error {
	if err := machine.ValidateID(id); err != nil {
		return err
	}
	defer p.lock("loops/" + id)()
	has, err := p.Loops(id)
	if err != nil {
		return err
	}
	device, err := numbered(has, number)
	if err != nil {
		return err
	}
	if err := p.takeBack(id, device); err != nil {
		return err
	}
	return p.hide(id, device.Node(), unix.MNT_DETACH) // programs may have it open
}

// ResizeLoop lets a loop device that a machine has asked for have the size that its file has by now.
func (p *Provider) ResizeLoop(id string, number int) error {
	if err := machine.ValidateID(id); err != nil {
		return err
	}
	defer p.lock("loops/" + id)()
	has, err := p.Loops(id)
	if err != nil {
		return err
	}
	device, err := numbered(has, number)
	if err != nil {
		return err
	}
	return loopdevice.Resize(device)
}

// numbered is the loop device of a number among those of a machine.
func numbered(has []loopdevice.Device, number int) (loopdevice.Device, error) {
	at := slices.IndexFunc(has, func(d loopdevice.Device) bool { return d.Number == number })
	if at < 0 {
		return loopdevice.Device{}, ErrNotAttached
	}
	return has[at], nil
}

// CheckLoops withdraws what a machine was lent of devices that are no longer Muster's: somebody else has detached them.
func (p *Provider) CheckLoops(id string) error {
	defer p.lock("loops/" + id)()
	lent, err := lentIn(p.lentTo(id))
	if err != nil || len(lent) == 0 {
		return err
	}
	all, err := loopdevice.List()
	if err != nil {
		return err
	}
	var errs []error
	for name, device := range lent {
		if !slices.ContainsFunc(all, func(d loopdevice.Device) bool {
			return loopdevice.DeviceNumber(d.Number) == device && strings.HasPrefix(d.Name, "muster-")
		}) {
			errs = append(errs, withdraw(filepath.Join(p.lentTo(id), name)))
			if !strings.HasPrefix(name, lentVolume) {
				errs = append(errs, p.hide(id, "/dev/"+name, unix.MNT_DETACH))
			}
		}
	}
	return errors.Join(errs...)
}
