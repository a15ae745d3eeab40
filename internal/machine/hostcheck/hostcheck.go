// SPDX-License-Identifier: Apache-2.0

// Package hostcheck says before a start what keeps this host from running the machines that are asked for: the local
// provider's needs, isolation, disk, inotify. It changes nothing.
package hostcheck

import (
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
)

// Local asks the local provider whether this host can run machines: root, programs, control group controllers.
func Local(dir statedir.Dir, binDir string, in region.Region) error {
	_, err := local.New(local.Config{State: dir, BinDir: binDir, Subnets: local.Subnets(dir), Region: in, Log: slog.New(slog.DiscardHandler)})
	return err
}

// Isolation refuses node groups whose machines would be root on a host whose owner has not allowed it, and a host that
// cannot give machines ids of their own unless the owner lets them do without. The clusters that may be the host's
// equals are read from the directory if nil; explicit says that node groups are asked for now.
func Isolation(dir statedir.Dir, wanted clusterconfig.Config, clusters hostroot.Clusters, explicit bool) error {
	name := wanted.Cluster.Spec.Name
	if clusters == nil {
		var err error
		if clusters, err = hostroot.Read(dir); err != nil {
			return err
		}
	}
	allowed := clusters.Allow(name)
	for _, group := range wanted.NodeGroups {
		if group.Spec.Isolation == v1alpha1.IsolationNone && !allowed && (explicit || !dir.Exists()) {
			return fmt.Errorf("node group %s: spec.isolation: %w", group.Spec.Name, hostroot.Refused{Cluster: name})
		}
	}
	if allowed {
		return nil
	}
	err := userns.Check(statedir.Nearest(dir))
	if volumes := dir.FileSystems(); err == nil && isDir(volumes) { // which may be on a disk of their own
		err = userns.Check(volumes)
	}
	if err != nil {
		return fmt.Errorf("machines cannot have users of their own on this host: %w. Or let root on machines of this cluster be root on this host, as isolation none: muster up --allow-host-root %s", err, name)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Disk refuses a state directory on a file system without room.
func Disk(dir statedir.Dir) error {
	path := statedir.Nearest(dir)
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return fmt.Errorf("looking at the file system of %s: %w", path, err)
	}
	size := uint64(stat.Bsize) //nolint:gosec // G115: a block size is positive
	return capacity.Disk(path, stat.Bavail*size, stat.Blocks*size)
}

// Inotify refuses node groups whose machines need more inotify instances than the host has left.
func Inotify(groups []*v1alpha1.NodeGroup) error {
	need := capacity.InotifyInstances(groups)
	left, err := host.Inotify(need)
	if err != nil {
		return err
	}
	return capacity.Inotify(need, left, host.InotifyLimit())
}
