// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

func volumeAttacks() []attack {
	return []attack{
		{
			"volume-setuid", "makes a setuid program on the volume and looks whether it belongs to the host's root",
			"the rights of the host's root for whoever runs it on the host", volumeSetuid,
		},
		{
			"volume-device", "makes the host's canary device on the volume and reads it",
			"the host's disks", volumeDevice,
		},
		{
			"volume-link", "follows a symbolic link on the volume to the host's file",
			"every file of the host", volumeLink,
		},
		{
			"volume-id-mapped", "shows the volume with other owners (mount_setattr MOUNT_ATTR_IDMAP)",
			"files of any owner on the host's disk", volumeIDMapped,
		},
		{
			"volume-immutable", "makes a file on the volume that not even the host's root can remove (FS_IMMUTABLE_FL)",
			"space that the host does not get back", volumeImmutable,
		},
		{
			"volume-trusted", "writes an attribute in the trusted name space on the volume",
			"what overlays of the host believe about their layers", volumeTrusted,
		},
		{
			"volume-freeze", "thaws the volume's file system, which is not frozen (FITHAW): whoever may thaw may freeze",
			"everything that the host writes stands still", volumeFreeze,
		},
		{
			"volume-watched", "watches the whole file system of the volume (fanotify) and takes the files that the host opens",
			"every file that the host opens", volumeWatched,
		},
		{
			"disk-filled", "takes more room on the machine's disk than it may have (fallocate)",
			"the disk on which every etcd of the host lies", diskFilled,
		},
	}
}

// onVolume makes a file on the volume and returns a function that removes it.
func (w *world) onVolume() (file *os.File, remove func(), err error) {
	if w.Volume == "" {
		return nil, nil, fmt.Errorf("-volume is not given: %w", unix.ENODEV)
	}
	file, err = os.CreateTemp(w.Volume, ".escape.")
	if err != nil {
		return nil, nil, err
	}
	return file, func() { _ = file.Close(); _ = os.Remove(file.Name()) }, nil //nolint:gosec // G703: the paths are those of whoever runs it
}

func volumeSetuid(w *world) finding {
	file, remove, err := w.onVolume()
	if err != nil {
		return refused("making a file", err)
	}
	defer remove()
	fd := int(file.Fd())
	_ = unix.Fchown(fd, 0, 0) // it may be another user's
	if err := unix.Fchmod(fd, 0o4755); err != nil {
		return refused("making it setuid", err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return refused("looking at it", err)
	}
	hosts, err := isHostRoots(stat.Uid)
	switch {
	case err != nil:
		return notHere("%v", err)
	case stat.Mode&unix.S_ISUID == 0:
		return held("the kernel took the setuid bit away")
	case !hosts:
		return held("it belongs to user %d here, who is not the host's root", stat.Uid)
	}
	return out("a setuid program of the host's root lay on the volume")
}

func volumeDevice(w *world) finding {
	numbers, ok := device(w.CanaryDevice)
	if !ok || w.Volume == "" {
		return notHere("-volume or -canary-device is not given")
	}
	return w.makeCanary(filepath.Join(w.Volume, ".escape."+w.mark), numbers)
}

func volumeLink(w *world) finding {
	if w.Volume == "" || w.HostFile == "" {
		return notHere("-volume or -host-file is not given")
	}
	link := filepath.Join(w.Volume, ".escape."+w.mark)
	if err := os.Symlink(w.HostFile, link); err != nil {
		return refused("making a link", err)
	}
	defer func() { _ = os.Remove(link) }() //nolint:gosec // G703: the paths are those of whoever runs it
	var tried ways
	raw, err := os.ReadFile(link) //nolint:gosec // G703: the paths are those of whoever runs it
	if err != nil {
		tried.add("reading it", err)
	}
	token := w.Find(raw)
	if place, err := w.spare(); token == "" && err == nil { // the kernel's mount follows links, too
		if err := w.mount(link, place, "", unix.MS_BIND, ""); err != nil {
			tried.add("mounting it", err)
		}
	}
	if token != "" {
		return outWith(token, "read the host's file by a link on the volume")
	}
	if !tried.held { // links lead within the machine, so the file is simply not there
		return held("the link leads nowhere: %s", tried.summary())
	}
	return tried.finding()
}

func volumeIDMapped(w *world) finding {
	if w.Volume == "" {
		return notHere("-volume is not given")
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, w.Volume, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return refused("cloning the volume's mount", err)
	}
	namespace, end, err := userNamespace()
	if err != nil {
		return refused("making a user namespace", err)
	}
	defer end()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace)} //nolint:gosec // G115: a descriptor
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return refused("mapping its owners", err)
	}
	return out("had a mount of the volume with owners of its own choice")
}

// userNamespace makes a user namespace that maps user 1 to its user 0, and keeps it until end is called.
func userNamespace() (fd int, end func(), err error) {
	idle := exec.Command(self, childWord) //nolint:noctx // it is killed below; it is stopped before it runs
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1, Size: 1}}
	idle.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, Ptrace: true, UidMappings: ids, GidMappings: ids, Pdeathsig: syscall.SIGKILL}
	if err := idle.Start(); err != nil {
		return -1, nil, err
	}
	end = func() {
		_ = idle.Process.Kill()
		_ = idle.Wait() // it was killed
	}
	fd, err = unix.Open(fmt.Sprintf("/proc/%d/ns/user", idle.Process.Pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		end()
		return -1, nil, err
	}
	return fd, end, nil
}

// immutable is FS_IMMUTABLE_FL (linux/fs.h).
const immutable = 0x10

func volumeImmutable(w *world) finding {
	file, remove, err := w.onVolume()
	if err != nil {
		return refused("making a file", err)
	}
	defer remove()
	fd := int(file.Fd())
	was, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return refused("reading its flags", notSupported(err))
	}
	if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, was|immutable); err != nil {
		return refused("making it immutable", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, was); err != nil {
		return out("made %s immutable for good: %v", file.Name(), err)
	}
	return out("made a file on the volume immutable, and changed it back")
}

// notSupported turns the kernel's answer to an unknown call to a file into one that says so.
func notSupported(err error) error {
	if errors.Is(err, unix.ENOTTY) {
		return unix.EOPNOTSUPP
	}
	return err
}

func volumeTrusted(w *world) finding {
	file, remove, err := w.onVolume()
	if err != nil {
		return refused("making a file", err)
	}
	defer remove()
	if err := unix.Fsetxattr(int(file.Fd()), "trusted.overlay.opaque", []byte("y"), 0); err != nil {
		return refused("writing the attribute", err)
	}
	return out("wrote trusted.overlay.opaque on the volume, and removed the file")
}

func volumeFreeze(w *world) finding {
	if w.Volume == "" {
		return notHere("-volume is not given")
	}
	dir, err := unix.Open(w.Volume, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening the volume", err)
	}
	const thaw = 0xc0045878 // FITHAW
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(dir), thaw, 0)
	if errno == 0 || errno == unix.EINVAL { // it was not frozen
		return out("the kernel would have frozen the host's file system: %v", errno)
	}
	return refused("thawing the volume's file system", notSupported(errno))
}

func volumeWatched(w *world) finding {
	if w.Volume == "" || !w.HostTicks {
		return notHere("-volume or -host-ticks is not given")
	}
	group, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return refused("making a group of watches", err)
	}
	if err := unix.FanotifyMark(group, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, unix.FAN_OPEN, unix.AT_FDCWD, w.Volume); err != nil {
		return refused("watching the volume's file system", err)
	}
	token := ""
	events := 0
	waitFor(group, func(data []byte) bool {
		const size = 24 // struct fanotify_event_metadata
		for ; len(data) >= size; data = data[size:] {
			events++
			fd := int(int32(le32(data[16:]))) //nolint:gosec // G115: a descriptor
			if fd >= 0 && token == "" {
				token = w.Find(readFD(fd))
			}
			_ = unix.Close(fd)
		}
		return token != ""
	})
	if token == "" {
		return held("none of %d files that were opened is the host's", events)
	}
	return outWith(token, "was given the host's file when the host opened it")
}

func diskFilled(w *world) finding {
	if w.Disk == "" || w.MostDisk == 0 {
		return notHere("-disk or -most-disk is not given")
	}
	file, err := os.CreateTemp(w.Disk, ".escape.")
	if err != nil {
		return refused("making a file", err)
	}
	defer func() { _ = file.Close(); _ = os.Remove(file.Name()) }() //nolint:gosec // G703: the paths are those of whoever runs it
	if err := unix.Fallocate(int(file.Fd()), 0, 0, w.MostDisk); err != nil {
		return refused(fmt.Sprintf("taking %d bytes", w.MostDisk), err)
	}
	return out("took %d bytes of the disk", w.MostDisk)
}
