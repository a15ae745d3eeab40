// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/volumemount"
)

// Mount asks for a volume at a path of a machine.
type Mount struct {
	Provider v1alpha1.Provider `json:"provider"`
	Mount    volumemount.Mount `json:"mount"`
}

// Unmount asks for the end of the mount at a path of a machine.
type Unmount struct {
	Machine
	Target string `json:"target"`
}

// Volume asks about a volume on all machines of a provider.
type Volume struct {
	Provider v1alpha1.Provider  `json:"provider"`
	Volume   volumemount.Volume `json:"volume"`
}

// Sweep asks for the end of the devices of a cluster that are mounted on no machine of a provider.
type Sweep struct {
	Provider v1alpha1.Provider `json:"provider"`
	Cluster  string            `json:"cluster"`
}

func (a Mount) validate() error {
	return errors.Join(machine.ValidateID(a.Mount.Machine), validTarget(a.Mount.Target), validVolume(a.Mount.Volume))
}

func (a Unmount) validate() error {
	return errors.Join(a.Machine.validate(), validTarget(a.Target))
}

func (a Volume) validate() error { return validVolume(a.Volume) }

func (a Sweep) validate() error { return nil }

func validVolume(v volumemount.Volume) error {
	err := errors.Join(efs.CheckFileSystemID(v.FileSystemID), efs.CheckPath(v.Path))
	if v.Disk != "" {
		err = errors.Join(err, efs.CheckAccessPointID(v.Disk))
	}
	return err
}

// maxTarget is the length of a path, in bytes (limits.h, PATH_MAX).
const maxTarget = 4096

func validTarget(target string) error {
	if len(target) >= maxTarget || !path.IsAbs(target) || path.Clean(target) != target || target == "/" || strings.ContainsRune(target, 0) {
		return fmt.Errorf("invalid path %.100q of a machine: must begin with / and have neither empty names nor . or .. among them", target)
	}
	return nil
}

// Mount implements [Mounter].
func (h *Agent) Mount(ctx context.Context, ask Mount) error {
	mounts, err := h.mounts(ask.Provider)
	if err != nil {
		return err
	}
	return mounts.Mount(ctx, ask.Mount)
}

// Mounted implements [Mounter].
func (h *Agent) Mounted(ctx context.Context, ask Mount) (bool, error) {
	mounts, err := h.mounts(ask.Provider)
	if err != nil {
		return false, err
	}
	return mounts.Mounted(ctx, ask.Mount)
}

// Unmount implements [Mounter].
func (h *Agent) Unmount(ctx context.Context, ask Unmount) error {
	mounts, err := h.mounts(ask.Provider)
	if err != nil {
		return err
	}
	return mounts.Unmount(ctx, ask.ID, ask.Target)
}

// Writers implements [Mounter].
func (h *Agent) Writers(ctx context.Context, ask Volume) ([]string, error) {
	mounts, err := h.mounts(ask.Provider)
	if err != nil {
		return nil, err
	}
	return mounts.Writers(ctx, ask.Volume)
}

// Resize implements [Mounter].
func (h *Agent) Resize(ctx context.Context, ask Volume) error {
	mounts, err := h.mounts(ask.Provider)
	if err != nil {
		return err
	}
	return mounts.Resize(ctx, ask.Volume)
}

// Sweep implements [Mounter].
func (h *Agent) Sweep(ctx context.Context, ask Sweep) error {
	mounts, err := h.mounts(ask.Provider)
	if err != nil {
		return err
	}
	return mounts.Sweep(ctx, ask.Cluster)
}

// mounts are those of the machines of a provider: the same for all callers, since it knows what is being mounted.
func (h *Agent) mounts(of v1alpha1.Provider) (*volumemount.Host, error) {
	machines, err := machine.Ask[volumemount.Machines](h.providers, of, v1alpha1.MountVolumes)
	if err != nil {
		return nil, err
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.mounted[of] == nil {
		h.mounted[of] = volumemount.New(h.files, machines)
	}
	return h.mounted[of], nil
}

// mounts has machines of a host that mount volumes.
type mounts struct{ provider }

var _ volumemount.Mounts = mounts{}

// Mount implements [volumemount.Mounts].
func (m mounts) Mount(ctx context.Context, ask volumemount.Mount) error {
	return m.host.Mount(ctx, Mount{m.name, ask})
}

// Mounted implements [volumemount.Mounts].
func (m mounts) Mounted(ctx context.Context, ask volumemount.Mount) (bool, error) {
	return m.host.Mounted(ctx, Mount{m.name, ask})
}

// Unmount implements [volumemount.Mounts].
func (m mounts) Unmount(ctx context.Context, id, target string) error {
	return m.host.Unmount(ctx, Unmount{m.of(id), target})
}

// Writers implements [volumemount.Mounts].
func (m mounts) Writers(ctx context.Context, v volumemount.Volume) ([]string, error) {
	return m.host.Writers(ctx, Volume{m.name, v})
}

// Resize implements [volumemount.Mounts].
func (m mounts) Resize(ctx context.Context, v volumemount.Volume) error {
	return m.host.Resize(ctx, Volume{m.name, v})
}

// Sweep implements [volumemount.Mounts].
func (m mounts) Sweep(ctx context.Context, cluster string) error {
	return m.host.Sweep(ctx, Sweep{m.name, cluster})
}
