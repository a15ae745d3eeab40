// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/storage/filestore"
)

// disks are the loop devices of a cluster's raw block volumes. A volume that is mounted to be written has a single
// device, on however many machines, so that all of them see the same. A volume that is mounted to be read has a
// read-only device. The mounts of machines say which devices are used; nothing else is remembered.
type disks struct {
	cluster  string
	files    *filestore.Store
	machines Machines
	mutex    sync.Mutex  // held while a device is chosen, attached or detached, and not while anything is done on a machine, which may hang
	mounting map[int]int // the devices that are being mounted, by their numbers, and how often: they are not taken for ones that nobody uses
}

// prefix begins the names of devices of the cluster.
func (d *disks) prefix() string {
	sum := sha256.Sum256([]byte(d.cluster))
	return fmt.Sprintf("muster-%x-", sum[:8])
}

// publish mounts the disk of an access point on a machine, as a block device.
func (d *disks) publish(machine string, point *v1alpha1.AccessPoint, how mounting) error {
	device, err := d.hold(point, how.readOnly)
	if err != nil {
		return err
	}
	defer d.release(device)
	// A device of another volume may be mounted there, from before its number was given to this volume's device: that
	// mount does not count.
	node, err := openNode(device)
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }()
	if mounted, err := d.machines.Mounted(machine, node, how.target); err != nil {
		return err
	} else if !mounted {
		if err := d.machines.Unmount(machine, how.target); err != nil {
			return err
		}
	}
	return how.mount(d.machines, machine, node)
}

// hold returns the device of an access point's disk, attached if it was not, which stays so until it is released.
func (d *disks) hold(point *v1alpha1.AccessPoint, readOnly bool) (loopdevice.Device, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	file, err := d.files.OpenDisk(point.Spec.FileSystemID, point.Spec.Path, readOnly)
	if err != nil {
		return loopdevice.Device{}, err
	}
	defer func() { _ = file.Close() }()
	device, ok, err := d.find(file, readOnly)
	if err == nil && !ok {
		device, err = loopdevice.Attach(file, d.prefix()+point.Name, readOnly)
	}
	if err != nil {
		return loopdevice.Device{}, err
	}
	if d.mounting == nil {
		d.mounting = map[int]int{}
	}
	d.mounting[device.Number]++
	return device, nil
}

func (d *disks) release(device loopdevice.Device) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.mounting[device.Number]--; d.mounting[device.Number] == 0 {
		delete(d.mounting, device.Number)
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

// find looks for the device of a disk.
func (d *disks) find(file *os.File, readOnly bool) (loopdevice.Device, bool, error) {
	all, err := d.of(file)
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

// of are the devices of a disk.
func (d *disks) of(file *os.File) ([]loopdevice.Device, error) {
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
		if one.FileSystem == stat.Dev && one.Inode == stat.Ino && strings.HasPrefix(one.Name, d.prefix()) {
			found = append(found, one)
		}
	}
	return found, nil
}

// mounted reports whether one of a disk's devices is mounted on a machine at a path.
func (d *disks) mounted(machine string, point *v1alpha1.AccessPoint, target string) (bool, error) {
	file, err := d.files.OpenDisk(point.Spec.FileSystemID, point.Spec.Path, true)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	all, err := d.of(file)
	if err != nil {
		return false, err
	}
	for _, one := range all {
		node, err := openNode(one)
		if err != nil {
			return false, err
		}
		is, err := d.machines.Mounted(machine, node, target)
		_ = node.Close()
		if is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// written reports whether a disk has a device that can be written. It first detaches devices that nobody uses, so that
// their data is in the file.
func (d *disks) written(disk *os.File) (bool, error) {
	if err := d.sweep(); err != nil {
		return false, err
	}
	all, err := d.of(disk)
	return slices.ContainsFunc(all, func(one loopdevice.Device) bool { return !one.ReadOnly }), err
}

// sweep detaches the devices of volumes that are mounted on no machine.
func (d *disks) sweep() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	all, err := loopdevice.List()
	if err != nil {
		return err
	}
	root, err := resolved(d.files)
	if err != nil {
		return err
	}
	mine := func(one loopdevice.Device) bool { return below(one, root) && strings.HasPrefix(one.Name, d.prefix()) }
	if len(unused(all, mine, nil)) == 0 {
		return nil
	}
	used, err := d.machines.LoopDevices()
	if err != nil {
		return err
	}
	for number := range d.mounting {
		used[number] = true
	}
	left := unused(all, mine, used)
	var numbers []int
	for _, one := range left {
		numbers = append(numbers, one.Number)
	}
	if err := d.machines.WithdrawLoops(numbers...); err != nil {
		return err
	}
	return detach(left)
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
func DetachCluster(files *filestore.Store, cluster string) error {
	return (&disks{cluster: cluster, files: files, machines: noMachines{}}).sweep()
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

// resize lets the devices of a disk have its size.
func (d *disks) resize(point *v1alpha1.AccessPoint) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	file, err := d.files.OpenDisk(point.Spec.FileSystemID, point.Spec.Path, true)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	all, err := d.of(file)
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range all {
		errs = append(errs, loopdevice.Resize(one))
	}
	return errors.Join(errs...)
}
