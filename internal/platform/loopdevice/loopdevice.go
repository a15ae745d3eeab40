// SPDX-License-Identifier: Apache-2.0

// Package loopdevice makes regular files block devices, by the kernel's loop devices (loop(4)).
//
// It keeps no state: a loop device is found by the file behind it, and says itself what it is called. A device outlives
// the process that attached it, so whoever attaches devices looks for those that nobody uses any more, too.
//
// What happens if
//
//	another process takes the number that was free   the next free one is tried
//	a process is killed that held a device           the device goes, unless it is mounted
//	a device is detached that a program has open     it goes when the last program closes it; until then it is Detaching
//	/dev has no node of a device, as in a container  the node is made
package loopdevice

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	controlPath = "/dev/loop-control"
	sysDir      = "/sys/block"
	// attempts is how often a number may be taken by another process between asking for it and using it.
	attempts = 32
	// sector is the size of a sector in bytes. A device has a whole number of sectors.
	sector = 512
	// major is the number of the driver (Documentation/admin-guide/devices.txt).
	major = 7
)

// ErrUnsupported says that the host has no loop devices.
var ErrUnsupported = errors.New("the kernel of this host has no loop devices: load its module loop")

// Device is a loop device with a file behind it.
type Device struct {
	Number int
	// Name is what the process that attached it called it; "" for those that other programs attached.
	Name string
	// Path of the file behind it, as the kernel shows it to this process.
	Path string
	// FileSystem and Inode say which file it is, whatever its path is by now.
	FileSystem, Inode uint64
	// Over is the number of the loop device that is itself behind this one, or -1.
	Over     int
	ReadOnly bool
	// Detaching reports whether the device goes when the last program closes it.
	Detaching bool
}

// MaxName is how long the name of a device may be, in bytes.
const MaxName = 63

// Node is the path of the device below /dev.
func (d Device) Node() string { return node(d.Number) }

func node(number int) string { return "/dev/loop" + strconv.Itoa(number) }

// DeviceNumber is what the kernel knows a loop device by.
func DeviceNumber(number int) uint64 { return unix.Mkdev(major, uint32(number)) } //nolint:gosec // G115: a minor number

// IsDeviceNumber reports whether that is the number of a loop device.
func IsDeviceNumber(device uint64) bool { return unix.Major(device) == major }

// Attach makes a regular file, or another block device, a block device of a name. The device reads and writes the file
// past the page cache where the file system can.
func Attach(file *os.File, name string, readOnly bool) (Device, error) {
	device, held, err := attach(file, name, readOnly, 0)
	if err != nil {
		return Device{}, err
	}
	_ = held.Close()
	return device, nil
}

// Hold makes a file a block device as Attach does, that goes when nobody has it open or mounted any more: if the caller
// closes what it is returned, or is killed, before it has mounted the device, none is left. A device that the file is
// behind already is that one: two file systems of one file would write over each other.
func Hold(file *os.File, name string) (Device, *os.File, error) {
	if device, held, err := reopen(file); err != nil || held != nil {
		return device, held, err
	}
	return attach(file, name, false, unix.LO_FLAGS_AUTOCLEAR)
}

// reopen opens the device that a file is behind; nil if there is none.
func reopen(file *os.File) (Device, *os.File, error) {
	var is unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &is); err != nil {
		return Device{}, nil, err
	}
	all, err := List()
	if err != nil {
		return Device{}, nil, err
	}
	for _, seen := range all {
		if seen.Inode != is.Ino || seen.FileSystem != is.Dev || seen.Over >= 0 {
			continue
		}
		fd, err := open(seen.Number, unix.O_RDONLY)
		if errors.Is(err, unix.ENXIO) {
			continue
		}
		if err != nil {
			return Device{}, nil, err
		}
		held := os.NewFile(uintptr(fd), seen.Node()) // from here on it does not go by itself
		if now, err := look(seen.Number, fd); err == nil && now.Inode == is.Ino && now.FileSystem == is.Dev && now.Over < 0 {
			return now, held, nil
		}
		_ = held.Close()
	}
	return Device{}, nil, nil
}

func attach(file *os.File, name string, readOnly bool, flags uint32) (Device, *os.File, error) {
	info, err := file.Stat()
	if err != nil {
		return Device{}, nil, err
	}
	if isBlock := info.Mode().Type() == fs.ModeDevice; !isBlock && (!info.Mode().IsRegular() || info.Size() < sector) {
		return Device{}, nil, fmt.Errorf("%s cannot be a block device: it must be a regular file of at least %d bytes, or a block device", file.Name(), sector)
	}
	if name == "" || len(name) > MaxName {
		return Device{}, nil, fmt.Errorf("invalid name %q of a loop device: must have 1 to %d bytes", name, MaxName)
	}
	control, err := openNode(controlPath, unix.S_IFCHR, unix.Mkdev(10, 237), unix.O_RDWR)
	if err != nil {
		if _, statErr := os.Stat("/sys/devices/virtual/misc/loop-control"); errors.Is(statErr, fs.ErrNotExist) {
			return Device{}, nil, ErrUnsupported
		}
		return Device{}, nil, err
	}
	defer func() { _ = unix.Close(control) }()
	for range attempts {
		number, err := unix.IoctlRetInt(control, unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return Device{}, nil, fmt.Errorf("asking for a free loop device: %w", err)
		}
		device, held, err := configure(number, file, name, readOnly, flags)
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENXIO) { // another process was faster, or removed it
			continue
		}
		return device, held, err
	}
	return Device{}, nil, fmt.Errorf("attaching %s: other processes took %d free loop devices meanwhile", file.Name(), attempts)
}

func configure(number int, file *os.File, name string, readOnly bool, flags uint32) (_ Device, _ *os.File, err error) {
	access := unix.O_RDWR
	if readOnly {
		access = unix.O_RDONLY
	}
	fd, err := open(number, access)
	if err != nil {
		return Device{}, nil, err
	}
	held := os.NewFile(uintptr(fd), node(number))
	defer func() {
		if err != nil {
			_ = held.Close()
		}
	}()
	config := unix.LoopConfig{Fd: uint32(file.Fd())} //nolint:gosec // G115: a file descriptor
	config.Info.Flags = unix.LO_FLAGS_DIRECT_IO | flags
	if readOnly {
		config.Info.Flags |= unix.LO_FLAGS_READ_ONLY
	}
	copy(config.Info.File_name[:MaxName], name)
	if err := unix.IoctlLoopConfigure(fd, &config); err != nil {
		return Device{}, nil, fmt.Errorf("attaching %s to %s: %w", file.Name(), node(number), err)
	}
	device, err := look(number, fd)
	return device, held, err
}

// open opens a device: for reading, but to attach one that is to be written, since udev looks at what was open for
// writing when it is closed.
func open(number, flags int) (int, error) {
	return openNode(node(number), unix.S_IFBLK, DeviceNumber(number), flags)
}

// openNode opens a device by its node, which is made if need be.
func openNode(path string, kind uint32, number uint64, flags int) (int, error) {
	for range 2 {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err == nil {
			var stat unix.Stat_t
			if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != kind || stat.Rdev != number {
				_ = unix.Close(fd)
				return -1, fmt.Errorf("%s is not the device %d:%d", path, unix.Major(number), unix.Minor(number))
			}
			return fd, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		if err := unix.Mknod(path, kind|0o600, int(number)); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // G115: a device number
			return -1, &fs.PathError{Op: "mknod", Path: path, Err: err}
		}
	}
	return -1, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// look asks a device what it is.
func look(number, fd int) (Device, error) {
	info, err := unix.IoctlLoopGetStatus64(fd)
	if err != nil {
		return Device{}, fmt.Errorf("looking at %s: %w", node(number), err)
	}
	d := Device{
		Number: number, FileSystem: info.Device, Inode: info.Inode, Over: -1,
		ReadOnly: info.Flags&unix.LO_FLAGS_READ_ONLY != 0, Detaching: info.Flags&unix.LO_FLAGS_AUTOCLEAR != 0,
	}
	name, _, _ := bytes.Cut(info.File_name[:], []byte{0})
	d.Name = string(name)
	if unix.Major(info.Rdevice) == major {
		d.Over = int(unix.Minor(info.Rdevice))
	}
	path, err := os.ReadFile(filepath.Join(sysDir, "loop"+strconv.Itoa(number), "loop", "backing_file"))
	if err != nil {
		return Device{}, err
	}
	d.Path = strings.TrimSuffix(strings.TrimSuffix(string(path), "\n"), " (deleted)")
	return d, nil
}

// List lists the devices of the host that have a file behind them, by number. Devices that this process may not open,
// as in a container without them, are left out: this process has not attached them.
func List() ([]Device, error) {
	names, err := filepath.Glob(filepath.Join(sysDir, "loop*", "loop", "backing_file"))
	if err != nil {
		return nil, err
	}
	var all []Device
	for _, name := range names {
		number, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(filepath.Dir(name))), "loop"))
		if err != nil {
			continue
		}
		fd, err := open(number, unix.O_RDONLY)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENXIO) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d, err := look(number, fd)
		_ = unix.Close(fd)
		if errors.Is(err, unix.ENXIO) || errors.Is(err, fs.ErrNotExist) { // it has just been detached
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Device) int { return a.Number - b.Number })
	return all, nil
}

// Detach takes the file from a device, if it is still the one that was seen. The kernel detaches a device that programs
// have open when the last program closes it.
func Detach(seen Device) error {
	fd, err := open(seen.Number, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	is, err := look(seen.Number, fd)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if is.Inode != seen.Inode || is.FileSystem != seen.FileSystem || is.Over != seen.Over { // another one's by now
		return nil
	}
	if err := unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detaching %s: %w", seen.Node(), err)
	}
	return nil
}

// Resize lets a device have the size that its file has by now.
func Resize(d Device) error {
	fd, err := open(d.Number, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.IoctlSetInt(fd, unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("resizing %s: %w", d.Node(), err)
	}
	return nil
}
