// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/statedir"
)

// LoopDevices are the numbers of the loop devices that are mounted on machines which run, or lent to them.
func (p *Provider) LoopDevices() (map[int]bool, error) {
	pids, err := Running(p.config.State)
	if err != nil {
		return nil, err
	}
	all := map[int]bool{}
	for id, pid := range pids {
		mounts, err := readMounts(strconv.Itoa(pid))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) { // it has just ended
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking at the mounts of machine %s: %w", id, err)
		}
		for _, number := range mountedLoops(mounts) {
			all[number] = true
		}
	}
	return all, p.lentVolumes(all)
}

var loopPattern = regexp.MustCompile(`^/loop(0|[1-9][0-9]{0,6})$`)

// mountedLoops finds the loop devices that are mounted below a kubelet's directory: the root of such a mount is the
// device's node in its own file system.
func mountedLoops(mounts []mount) []int {
	var all []int
	for _, one := range mounts {
		if !strings.HasPrefix(one.point, kubeletDir) {
			continue
		}
		if found := loopPattern.FindStringSubmatch(one.root); found != nil {
			if number, err := strconv.Atoi(found[1]); err == nil {
				all = append(all, number)
			}
		}
	}
	return all
}

// podMounts finds the paths at which kubelets have volumes of CSI mounted for pods.
func podMounts(mounts []mount) []string {
	var all []string
	for _, one := range mounts {
		at := one.point
		if strings.HasPrefix(at, kubeletDir+"pods/") && strings.HasSuffix(at, "/mount") || strings.HasPrefix(at, kubeletDir+"plugins/kubernetes.io/csi/volumeDevices/publish/") {
			all = append(all, at)
		}
	}
	return all
}

// detachLoops withdraws the devices that a machine was lent, and detaches the loop devices that it asked for or that
// its programs attached to files on its disk. The machine and its programs have ended.
func detachLoops(dir statedir.Dir, id string) error {
	if machine.ValidateID(id) != nil {
		return nil //nolint:nilerr // a file that is none of a machine's
	}
	disk := filepath.Join(dir.Machine(id), rootDir)
	if err := withdrawAll(filepath.Join(dir.Machine(id), lentDir)); err != nil {
		return err
	}
	all, err := loopdevice.List()
	if err != nil {
		return fmt.Errorf("looking at loop devices: %w", err)
	}
	var errs []error
	for _, d := range all {
		if d.Name != loopName(dir, id) && !onDisk(d, disk) {
			continue
		}
		for _, lock := range all { // of a kubelet, which has such a device over each that pods use
			if lock.Over == d.Number {
				errs = append(errs, loopdevice.Detach(lock))
			}
		}
		errs = append(errs, loopdevice.Detach(d))
	}
	return errors.Join(errs...)
}

// onDisk reports whether the file behind a device is on the disk of a machine. The kernel shows its path on the
// machine, whose mounts are gone, or on the host; it is the file that has to be the same.
func onDisk(d loopdevice.Device, disk string) bool {
	root, err := os.OpenRoot(disk)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	for _, path := range []string{strings.TrimPrefix(d.Path, disk), d.Path} {
		info, err := root.Lstat(strings.TrimPrefix(path, "/"))
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Ino == d.Inode && stat.Dev == d.FileSystem {
			return true
		}
	}
	return false
}
