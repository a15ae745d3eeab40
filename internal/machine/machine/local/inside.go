// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/userns"
)

// ErrNotRunning says that a machine has no process in which something could be mounted.
var ErrNotRunning = errors.New("the machine does not run")

// Boot names the boot of a machine that runs: it is another one after each reboot. False if it does not run.
func (p *Provider) Boot(id string) (string, bool) {
	pid, running, err := p.find(id)
	return strconv.Itoa(pid), running && err == nil
}

// inside calls fn on a thread that is in the mount namespace and the root directory of a machine. Every path that fn
// uses is the machine's, which may make what it likes of it: links in it lead nowhere else. fn must not start
// goroutines or programs, nor open files by package os, which waits for all files of the service together.
//
// A path of the machine's may also never answer. Then inside returns ErrHangs after a while, and fn goes on alone: it
// keeps to itself what it finds until it has committed its visit, and uses nothing that the caller takes away.
func (p *Provider) inside(id string, fn func(*visit) error) (err error) {
	v, err := p.visits.begin(id)
	if err != nil {
		return fmt.Errorf("machine %s: %w", id, err)
	}
	begun := false
	defer func() {
		if !begun {
			v.end()
		}
	}()
	pid, running, err := p.find(id)
	if err != nil {
		return err
	}
	if !running {
		return ErrNotRunning
	}
	held, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("taking hold of machine %s: %w", id, err)
	}
	defer func() {
		if !begun {
			_ = unix.Close(held)
		}
	}()
	// The machine's first process is held elsewhere, too: if it runs now, the number was its own a moment ago.
	if again, running, err := p.find(id); err != nil || !running || again != pid {
		return errors.Join(ErrNotRunning, err)
	}
	record, err := p.store.Get(providerName, id)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	begun = true
	go host.OnThread(func() {
		defer v.end()
		defer func() { _ = unix.Close(held) }()
		done <- enter(held, pid, record.IDs, func() error { return fn(v) })
	})
	return p.visits.wait(v, done)
}

// enter puts the calling thread into a machine, as root there: where the machine has ids of its own, nobody on the
// host.
func enter(held, pid int, ids userns.IDs, fn func() error) error {
	root, err := unix.Open(filepath.Join("/proc", strconv.Itoa(pid), "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the machine's root directory: %w", err)
	}
	defer func() { _ = unix.Close(root) }()
	if hosts, err := host.IsOwnRoot(root); err != nil || hosts {
		return errors.Join(err, fmt.Errorf("%w: it is still booting", ErrNotRunning))
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // a mount namespace is for threads that share no directory with others
		return fmt.Errorf("leaving the host's directories: %w", err)
	}
	if err := unix.Setns(held, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering the machine's mount namespace: %w", err)
	}
	if err := unix.Fchdir(root); err != nil {
		return fmt.Errorf("entering the machine's root directory: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("entering the machine's root directory: %w", err)
	}
	if ids.Own() {
		if err := ids.Enter(); err != nil {
			return err
		}
	}
	return fn()
}

// Listen makes a unix socket that root on a machine reaches at a path, in place of what is there. The machine's
// processes connect to the calling process, which knows by the socket which machine it hears.
func (p *Provider) Listen(id, socket string) (net.Listener, error) {
	var listener *net.UnixListener
	err := p.inside(id, func(v *visit) error {
		if err := os.MkdirAll(path.Dir(socket), 0o750); err != nil {
			return err
		}
		if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		made, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			return err
		}
		made.SetUnlinkOnClose(false) // the path would be the host's
		if err := os.Chmod(socket, 0o600); err != nil {
			return errors.Join(err, made.Close())
		}
		if err := v.commit(); err != nil {
			return errors.Join(err, made.Close())
		}
		listener = made
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listening at %s of machine %s: %w", socket, id, err)
	}
	return listener, nil
}

// kubeletDir is where kubelets have everything mounted.
const kubeletDir = "/var/lib/kubelet/"

// checkTarget refuses a path at which no kubelet has anything mounted.
func checkTarget(target string) error {
	if path.Clean(target) != target || !strings.HasPrefix(target, kubeletDir) || strings.Contains(target, "\x00") {
		return fmt.Errorf("invalid target %q: must be below %s", target, kubeletDir)
	}
	return nil
}

// Mount shows a directory or a block device of the host at a path of a machine's. Repeated calls make one mount. Device
// files in a directory open nothing there; containerd mounts it into containers again without nodev, where the
// container's rules for devices count. A mount that is only read keeps nobody from writing to a block device: that has
// to be read-only itself.
func (p *Provider) Mount(id string, source *os.File, target string, readOnly bool) (err error) {
	if err := errors.Join(machine.ValidateID(id), checkTarget(target)); err != nil {
		return err
	}
	var want unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &want); err != nil {
		return fmt.Errorf("looking at %s: %w", source.Name(), err)
	}
	record, err := p.store.Get(providerName, id)
	if err != nil {
		return err
	}
	if isBlock(want) && record.IDs.Own() {
		node, made, err := lend(p.lentTo(id), lentAt(target), want.Rdev, record.IDs.Host(0))
		if err != nil {
			return fmt.Errorf("lending %s to machine %s: %w", source.Name(), id, err)
		}
		defer func() { _ = node.Close() }()
		if err := p.show(id, node, target, deviceMount(readOnly)); err != nil {
			if made {
				err = errors.Join(err, withdraw(node.Name()))
			}
			return err
		}
		return nil
	}
	if isBlock(want) {
		return p.show(id, source, target, deviceMount(readOnly))
	}
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if readOnly {
		attributes.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if record.IDs.Own() { // who owns a file there is shown by the machine's ids
		namespace, err := record.IDs.Open()
		if err != nil {
			return err
		}
		defer func() { _ = namespace.Close() }()
		attributes.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attributes.Userns_fd = uint64(namespace.Fd())
	}
	return p.show(id, source, target, attributes)
}

// lentTo is where the nodes of devices are that a machine is lent.
func (p *Provider) lentTo(id string) string { return filepath.Join(p.store.Path(id), lentDir) }

func isBlock(stat unix.Stat_t) bool { return stat.Mode&unix.S_IFMT == unix.S_IFBLK }

// deviceMount are the attributes of a mount of a device's node.
func deviceMount(readOnly bool) unix.MountAttr {
	attributes := unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC, Attr_clr: unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE,
	}
	if readOnly {
		attributes.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return attributes
}

// Mounted reports whether a directory or device of the host is what a machine has at a path.
func (p *Provider) Mounted(id string, source *os.File, target string) (mounted bool, err error) {
	if err := errors.Join(machine.ValidateID(id), checkTarget(target)); err != nil {
		return false, err
	}
	var want unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &want); err != nil {
		return false, fmt.Errorf("looking at %s: %w", source.Name(), err)
	}
	if lent, err := p.lentInstead(id, want); err != nil || lent {
		if number, statErr := numberOf(filepath.Join(p.lentTo(id), lentAt(target))); err != nil || statErr != nil || number != want.Rdev {
			return false, err
		}
		if err := unix.Lstat(filepath.Join(p.lentTo(id), lentAt(target)), &want); err != nil {
			return false, err
		}
	}
	err = p.inside(id, func(v *visit) error {
		var is unix.Stat_t
		if err := unix.Lstat(target, &is); err != nil {
			return err
		}
		if err := v.commit(); err != nil {
			return err
		}
		mounted = is.Dev == want.Dev && is.Ino == want.Ino
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return mounted, err
}

// MountedAt are the paths at which a machine has a directory or device of the host for pods. Mounts of the same
// directory or device that kubelets make elsewhere do not count.
func (p *Provider) MountedAt(id string, source *os.File) (found []string, err error) {
	if err := machine.ValidateID(id); err != nil {
		return nil, err
	}
	var want unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &want); err != nil {
		return nil, fmt.Errorf("looking at %s: %w", source.Name(), err)
	}
	pid, running, err := p.find(id)
	if err != nil || !running {
		return nil, errors.Join(ErrNotRunning, err)
	}
	mounts, err := readMounts(strconv.Itoa(pid))
	if err != nil {
		return nil, fmt.Errorf("looking at the mounts of machine %s: %w", id, err)
	}
	targets := podMounts(mounts)
	if lent, err := p.lentInstead(id, want); err != nil || lent {
		return slices.DeleteFunc(targets, func(target string) bool {
			number, err := numberOf(filepath.Join(p.lentTo(id), lentAt(target)))
			return err != nil || number != want.Rdev
		}), err
	}
	err = p.inside(id, func(v *visit) error {
		var all []string
		for _, target := range targets {
			var is unix.Stat_t
			if err := unix.Lstat(target, &is); err == nil && is.Dev == want.Dev && is.Ino == want.Ino {
				all = append(all, target)
			}
		}
		if err := v.commit(); err != nil {
			return err
		}
		found = all
		return nil
	})
	return found, err
}

// lentInstead reports whether what a machine has of a device is a node that it is lent.
func (p *Provider) lentInstead(id string, source unix.Stat_t) (bool, error) {
	if !isBlock(source) {
		return false, nil
	}
	record, err := p.store.Get(providerName, id)
	return record.IDs.Own(), err
}

// Unmount removes a mount that Mount made on a machine, and the directory or file that it was mounted at. It is not an
// error if nothing is mounted.
func (p *Provider) Unmount(id, target string) error {
	if err := errors.Join(machine.ValidateID(id), checkTarget(target)); err != nil {
		return err
	}
	if err := withdraw(filepath.Join(p.lentTo(id), lentAt(target))); err != nil { // before anything that the machine can hold up
		return err
	}
	return p.hide(id, target, 0)
}
