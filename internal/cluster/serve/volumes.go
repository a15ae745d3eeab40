// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumedriver"
)

// removeVolumes removes the volumes of a cluster that is gone which are to go with it, as far as that has not been done. The others stay.
func (c clusterHosts) removeVolumes(ctx context.Context, cluster string) error {
	points := &v1alpha1.AccessPointList{}
	if err := c.api.List(ctx, points); err != nil {
		return fmt.Errorf("listing the volumes of cluster %s: %w", cluster, err)
	}
	files := c.files
	if local.Possible() {
		if err := volumedriver.DetachCluster(files, cluster); err != nil {
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
		if err := c.api.Delete(ctx, point, client.Preconditions{UID: &point.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing access point %s of cluster %s: %w", point.Name, cluster, err)
		}
	}
	return c.removeSnapshots(ctx, files, cluster)
}

// removeSnapshots does the same with snapshots of volumes, and with what is left of those that were never made whole.
func (c clusterHosts) removeSnapshots(ctx context.Context, files *filestore.Store, cluster string) error {
	snapshots := &v1alpha1.VolumeSnapshotList{}
	if err := c.api.List(ctx, snapshots); err != nil {
		return fmt.Errorf("listing the snapshots of cluster %s: %w", cluster, err)
	}
	for i := range snapshots.Items {
		snapshot := &snapshots.Items[i]
		if snapshot.Spec.ClusterName != cluster {
			continue
		}
		whole, err := files.Has(volumedriver.SnapshotPlace(snapshot))
		if err != nil {
			return fmt.Errorf("looking at snapshot %s of cluster %s: %w", snapshot.Name, cluster, err)
		}
		if whole && !snapshot.Spec.DeleteWithCluster {
			continue
		}
		if err := files.DiscardPlace(volumedriver.SnapshotPlace(snapshot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing snapshot %s of cluster %s: %w", snapshot.Name, cluster, err)
		}
		if err := volumedriver.ForgetSnapshot(ctx, c.api, snapshot); err != nil {
			return fmt.Errorf("removing what is left in cluster %s: %w", cluster, err)
		}
	}
	return nil
}

// addVolumes adds the volume driver of the cluster, where there are machines that mount.
func (h *hosted) addVolumes(mgr manager.Manager, scheme *runtime.Scheme, connection *rest.Config, c component.Config, providers map[v1alpha1.Provider]machine.Provider) error {
	machines, ok := providers[v1alpha1.ProviderLocal].(volumedriver.Machines)
	if !ok {
		return nil
	}
	management, err := h.service.managementClient(c.Account, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	cluster, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("making a client of the cluster for volumes: %w", err)
	}
	snapshots, err := dynamic.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("making a client of the cluster for snapshots: %w", err)
	}
	driver, err := volumedriver.New(volumedriver.Config{
		ClusterName: c.Cluster.Spec.Name, Inventory: mgr.GetClient(), Management: management, Cluster: cluster, Snapshots: snapshots, Machines: machines,
		Files: h.service.files, DefaultFileSystem: v1alpha1.DefaultFileSystemID(account.DefaultID), Log: h.log,
		VPCID: c.Network.VPCID,
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(driver); err != nil {
		return fmt.Errorf("adding the volume driver: %w", err)
	}
	return nil
}
