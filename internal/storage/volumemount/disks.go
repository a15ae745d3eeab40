// SPDX-License-Identifier: Apache-2.0

package volumemount

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/storage/filestore"
)

// A cluster's raw block volumes have loop devices. A volume that is mounted to be written has a single device, on however
// many machines, so that all of them see the same. A volume that is mounted to be read has a read-only device. The
// mounts of machines say which devices are used. Nothing else is remembered.

// DeviceName is the name of the loop device of a volume's disk.
func DeviceName(v Volume) string { return prefix(v.Cluster) + v.Disk }

// prefix begins the names of devices of a cluster.
func prefix(cluster string) string {
	sum := sha256.Sum256([]byte(cluster))
	return fmt.Sprintf("muster-%x-", sum[:8])
}

// publish mounts a disk on a machine, as a block device.
func (h *Host) publish(m Mount) error {
	device, err := h.hold(m.Volume, m.ReadOnly)
	if err != nil {
		return err
	}
	defer h.release(device)
	// A device of another volume may be mounted there, from before its number was given to this volume's device: that
	// mount does not count.
	node, err := openNode(device)
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }()
	if mounted, err := h.machines.Mounted(m.Machine, node, m.Target); err != nil {
		return err
	} else if !mounted {
		if err := h.machines.Unmount(m.Machine, m.Target); err != nil {
			return err
		}
	}
	return h.show(m, node)
}

// hold returns the device of a disk, attached if it was not, which stays so until it is released.
func (h *Host) hold(v Volume, readOnly bool) (loopdevice.Device, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	file, err := h.files.OpenDisk(v.FileSystemID, v.Path, readOnly)
	if err != nil {
		return loopdevice.Device{}, err
	}
	defer func() { _ = file.Close() }()
	device, ok, err := find(v.Cluster, file, readOnly)
	if err == nil && !ok {
		device, err = loopdevice.Attach(file, DeviceName(v), readOnly)
	}
	if err != nil {
		return loopdevice.Device{}, err
	}
	if h.mounting == nil {
		h.mounting = map[int]int{}
	}
	h.mounting[device.Number]++
	return device, nil
}

func (h *Host) release(device loopdevice.Device) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.mounting[device.Number]--; h.mounting[device.Number] == 0 {
		delete(h.mounting, device.Number)
	}
}

// openNode opens the node of a device, not the device.
func openNode(d loopdevice.Device) (*os.File, error) {
	fd, err := unix.Open(d.Node(), unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: d.Node(), Err: err}
	}
	return os.NewFile(uintptr(fd), d.Node()), nil
}

// find looks for the device of a cluster's disk.
func find(cluster string, file *os.File, readOnly bool) (loopdevice.Device, bool, error) {
	all, err := devicesOf(cluster, file)
	if err != nil {
		return loopdevice.Device{}, false, err
	}
	for _, one := range all {
		if one.ReadOnly != readOnly {
			continue
		}
		if one.Detaching { // a second one beside it would not see what the first has not written yet
			return loopdevice.Device{}, false, fmt.Errorf("%s is being detached from the volume: a program still has it open", one.Node())
		}
		return one, true, nil
	}
	return loopdevice.Device{}, false, nil
}

// devicesOf are the devices of a cluster's disk.
func devicesOf(cluster string, file *os.File) ([]loopdevice.Device, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return nil, err
	}
	all, err := loopdevice.List()
	if err != nil {
		return nil, err
	}
	var found []loopdevice.Device
	for _, one := range all {
		if one.FileSystem == stat.Dev && one.Inode == stat.Ino && strings.HasPrefix(one.Name, prefix(cluster)) {
			found = append(found, one)
		}
	}
	return found, nil
}

// hasDisk reports whether one of a disk's devices is mounted on a machine at a path.
func (h *Host) hasDisk(m Mount) (bool, error) {
	all, err := h.devices(m.Volume)
	if err != nil {
		return false, err
	}
	for _, one := range all {
		node, err := openNode(one)
		if err != nil {
			return false, err
		}
		is, err := h.machines.Mounted(m.Machine, node, m.Target)
		_ = node.Close()
		if is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// devices are the devices of a volume's disk.
func (h *Host) devices(v Volume) ([]loopdevice.Device, error) {
	file, err := h.files.OpenDisk(v.FileSystemID, v.Path, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return devicesOf(v.Cluster, file)
}

// isWritten reports whether a disk has a device that can be written. Unused devices are detached before the look, which
// writes their data to the file.
func (h *Host) isWritten(ctx context.Context, v Volume) (bool, error) {
	file, err := h.files.OpenDisk(v.FileSystemID, v.Path, true)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	if err := h.Sweep(ctx, v.Cluster); err != nil {
		return false, err
	}
	all, err := devicesOf(v.Cluster, file)
	return slices.ContainsFunc(all, func(one loopdevice.Device) bool { return !one.ReadOnly }), err
}

// Sweep detaches the devices of a cluster's volumes that are mounted on no machine.
func (h *Host) Sweep(_ context.Context, cluster string) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	all, err := loopdevice.List()
	if err != nil {
		return err
	}
	root, err := resolved(h.files)
	if err != nil {
		return err
	}
	mine := func(one loopdevice.Device) bool {
		return below(one, root) && strings.HasPrefix(one.Name, prefix(cluster))
	}
	if len(unused(all, mine, nil)) == 0 {
		return nil
	}
	used, err := h.machines.LoopDevices()
	if err != nil {
		return err
	}
	for number := range h.mounting {
		used[number] = true
	}
	left := unused(all, mine, used)
	var numbers []int
	for _, one := range left {
		numbers = append(numbers, one.Number)
	}
	if err := h.machines.WithdrawLoops(numbers...); err != nil {
		return err
	}
	return detach(left)
}

// Resize lets the devices of a disk have its size.
func (h *Host) Resize(_ context.Context, v Volume) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	all, err := h.devices(v)
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range all {
		errs = append(errs, loopdevice.Resize(one))
	}
	return errors.Join(errs...)
}

// DetachAll detaches the devices of all volumes of all clusters. No machine of theirs runs.
func DetachAll(files *filestore.Store) error {
	root, err := resolved(files)
	if err != nil {
		return err
	}
	all, err := loopdevice.List()
	if err != nil {
		return err
	}
	return detach(unused(all, func(one loopdevice.Device) bool { return below(one, root) }, nil))
}

// DetachCluster detaches the devices of a cluster's volumes. No machine of it runs.
func DetachCluster(ctx context.Context, files *filestore.Store, cluster string) error {
	return New(files, noMachines{}).Sweep(ctx, cluster)
}

// noMachines are the machines of a cluster that is gone.
type noMachines struct{ Machines }

// LoopDevices implements [Machines].
func (noMachines) LoopDevices() (map[int]bool, error) { return nil, nil } //nolint:nilnil // none

// WithdrawLoops implements [Machines].
func (noMachines) WithdrawLoops(...int) error { return nil }

// resolved is the directory of all file systems, as the kernel shows it.
func resolved(files *filestore.Store) (string, error) {
	root, err := filepath.EvalSymlinks(files.Root())
	if errors.Is(err, os.ErrNotExist) {
		return files.Root(), nil
	}
	return root, err
}

func below(d loopdevice.Device, root string) bool { return strings.HasPrefix(d.Path, root+"/") }

// unused chooses those of a volume's devices that are mounted nowhere. Before each come the devices over it: kubelets
// hold a device so, and one that was killed has not let it go.
func unused(all []loopdevice.Device, mine func(loopdevice.Device) bool, used map[int]bool) []loopdevice.Device {
	var chosen []loopdevice.Device
	for _, one := range all {
		if one.Over >= 0 || !mine(one) || used[one.Number] {
			continue
		}
		for _, lock := range all {
			if lock.Over == one.Number {
				chosen = append(chosen, lock)
			}
		}
		chosen = append(chosen, one)
	}
	return chosen
}

func detach(all []loopdevice.Device) error {
	var errs []error
	for _, one := range all {
		if !one.Detaching {
			errs = append(errs, loopdevice.Detach(one))
		}
	}
	return errors.Join(errs...)
}
