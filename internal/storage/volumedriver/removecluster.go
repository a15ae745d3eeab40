// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

// RemoveCluster removes the volumes of a cluster that is gone which are to go with it, as far as that has not been
// done. The others stay.
func RemoveCluster(ctx context.Context, management client.Client, files *filestore.Store, cluster string) error {
	points := &v1alpha1.AccessPointList{}
	if err := management.List(ctx, points); err != nil {
		return fmt.Errorf("listing the volumes of cluster %s: %w", cluster, err)
	}
	if host.AsRoot() {
		if err := volumemount.DetachCluster(ctx, files, cluster); err != nil {
			return fmt.Errorf("detaching the block devices of cluster %s: %w", cluster, err)
		}
	}
	for i := range points.Items {
		point := &points.Items[i]
		if point.Spec.ClusterName != cluster || !point.Spec.DeleteWithCluster {
			continue
		}
		if err := files.Discard(point.Spec.FileSystemID, point.Spec.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing volume %s of cluster %s: %w", point.Name, cluster, err)
		}
		if err := management.Delete(ctx, point, client.Preconditions{UID: &point.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing access point %s of cluster %s: %w", point.Name, cluster, err)
		}
	}
	return removeSnapshots(ctx, management, files, cluster)
}

// removeSnapshots does the same with snapshots of volumes, and with what is left of those that were never made whole.
func removeSnapshots(ctx context.Context, management client.Client, files *filestore.Store, cluster string) error {
	snapshots := &v1alpha1.VolumeSnapshotList{}
	if err := management.List(ctx, snapshots); err != nil {
		return fmt.Errorf("listing the snapshots of cluster %s: %w", cluster, err)
	}
	for i := range snapshots.Items {
		snapshot := &snapshots.Items[i]
		if snapshot.Spec.ClusterName != cluster {
			continue
		}
		whole, err := files.Has(SnapshotPlace(snapshot))
		if err != nil {
			return fmt.Errorf("looking at snapshot %s of cluster %s: %w", snapshot.Name, cluster, err)
		}
		if whole && !snapshot.Spec.DeleteWithCluster {
			continue
		}
		if err := files.DiscardPlace(SnapshotPlace(snapshot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing snapshot %s of cluster %s: %w", snapshot.Name, cluster, err)
		}
		if err := ForgetSnapshot(ctx, management, snapshot); err != nil {
			return fmt.Errorf("removing what is left in cluster %s: %w", cluster, err)
		}
	}
	return nil
}
