// SPDX-License-Identifier: Apache-2.0

package volumemount

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"muster.dev/muster/internal/storage/filestore"
)

// Volume names what is mounted on machines, by plain data.
type Volume struct {
	// Cluster is the spec.name of the cluster that mounts it.
	Cluster string `json:"cluster"`
	// FileSystemID and Path say where its directory or disk is.
	FileSystemID string `json:"fileSystemID"`
	Path         string `json:"path"`
	// Disk is the id of the access point if the volume is a raw block volume, whose disk becomes a block device of
	// machines. It is empty if the volume is a directory.
	Disk string `json:"disk,omitempty"`
}

// Mount is a volume at a path of a machine.
type Mount struct {
	Machine string `json:"machine"`
	Volume  Volume `json:"volume"`
	// Target is the absolute path on the machine.
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Alone refuses the mount if the machine has the volume at another path, since it is for one pod only
	// (ReadWriteOncePod).
	Alone bool `json:"alone,omitempty"`
}

// ErrNotAlone says that a volume for one pod only is mounted for another pod.
var ErrNotAlone = errors.New("another pod has it, and it is for one only (ReadWriteOncePod)")

// Machines are the machines of this host, which is where files and devices are open.
type Machines interface {
	// Mount shows a directory or a block device of the host at a path of the machine's. Repeated calls make one mount.
	Mount(id string, source *os.File, target string, readOnly bool) error
	// Mounted reports whether the directory or device is mounted there.
	Mounted(id string, source *os.File, target string) (bool, error)
	// MountedAt are the paths at which pods have it.
	MountedAt(id string, source *os.File) ([]string, error)
	// Writers are the machines that run and have a directory mounted to be written, or one above or below it.
	Writers(source *os.File) ([]string, error)
	// Unmount removes the mount, and the directory or file that it was mounted at. It is not an error if nothing is
	// mounted.
	Unmount(id, target string) error
	// LoopDevices are the numbers of the loop devices that are mounted on machines which run.
	LoopDevices() (map[int]bool, error)
	// WithdrawLoops takes loop devices away from all machines that still have nodes of them, before they are detached.
	WithdrawLoops(numbers ...int) error
}

// Mounts mounts volumes on machines, which may be those of another host: a caller names volumes and opens none. The
// errors are those of [Host].
type Mounts interface {
	// Mount mounts a volume; repeated calls make one mount.
	Mount(ctx context.Context, m Mount) error
	// Mounted reports whether a volume is mounted on a machine at a path, however it was mounted.
	Mounted(ctx context.Context, m Mount) (bool, error)
	// Unmount removes the mount at a path of a machine. It is not an error if nothing is mounted.
	Unmount(ctx context.Context, machine, target string) error
	// Writers says which machines can write a volume, for people.
	Writers(ctx context.Context, v Volume) ([]string, error)
	// Resize lets the devices of a disk have its size.
	Resize(ctx context.Context, v Volume) error
	// Sweep detaches the devices of a cluster's disks that are mounted on no machine.
	Sweep(ctx context.Context, cluster string) error
}

var _ Mounts = (*Host)(nil)

// Host mounts volumes on the machines of this host.
type Host struct {
	files    *filestore.Store
	machines Machines
	alone    sync.Map    // machines to locks, each held while a volume for one pod only is mounted there
	mutex    sync.Mutex  // held while a device is chosen, attached or detached, and not while anything is done on a machine, which may hang
	mounting map[int]int // the devices that are being mounted, by their numbers, and how often: they are not taken for unused
}

// New makes a Host. Nothing is mounted yet.
func New(files *filestore.Store, machines Machines) *Host {
	return &Host{files: files, machines: machines}
}

// Mount mounts a volume; repeated calls make one mount. The error is [ErrNotAlone], or fs.ErrNotExist if the file system
// has nothing at the volume's path.
func (h *Host) Mount(_ context.Context, m Mount) error {
	if m.Alone {
		lock, _ := h.alone.LoadOrStore(m.Machine, new(sync.Mutex))
		held := lock.(*sync.Mutex) //nolint:forcetypeassert // no other type is stored
		held.Lock()
		defer held.Unlock()
	}
	if m.Volume.Disk != "" {
		return h.publish(m)
	}
	source, err := h.files.Open(m.Volume.FileSystemID, m.Volume.Path)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	return h.show(m, source)
}

// show mounts what is open.
func (h *Host) show(m Mount, source *os.File) error {
	if m.Alone {
		all, err := h.machines.MountedAt(m.Machine, source)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(at string) bool { return at != m.Target }) {
			return ErrNotAlone
		}
	}
	return h.machines.Mount(m.Machine, source, m.Target, m.ReadOnly)
}

// Mounted reports whether a volume is mounted on a machine at a path, however it was mounted.
func (h *Host) Mounted(_ context.Context, m Mount) (bool, error) {
	if m.Volume.Disk != "" {
		return h.hasDisk(m)
	}
	source, err := h.files.Open(m.Volume.FileSystemID, m.Volume.Path)
	if err != nil {
		return false, err
	}
	defer func() { _ = source.Close() }()
	return h.machines.Mounted(m.Machine, source, m.Target)
}

// Unmount removes the mount at a path of a machine, and the directory or file that it was mounted at. It is not an error
// if nothing is mounted. The device of a disk is left to Sweep.
func (h *Host) Unmount(_ context.Context, machine, target string) error {
	return h.machines.Unmount(machine, target)
}

// Writers says which machines of the host can write a volume, for people: of a disk, only whether a machine can.
func (h *Host) Writers(ctx context.Context, v Volume) ([]string, error) {
	if v.Disk != "" {
		if written, err := h.isWritten(ctx, v); err != nil || !written {
			return nil, err
		}
		return []string{"a machine"}, nil
	}
	directory, err := h.files.Open(v.FileSystemID, v.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = directory.Close() }()
	return h.machines.Writers(directory)
}
