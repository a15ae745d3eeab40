// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
)

func (d *deleteCommand) fileSystems() *cobra.Command {
	return d.finish(&cobra.Command{
		Use:     "filesystem NAME...",
		Aliases: []string{"filesystems", "efs"},
		Short:   "Delete file systems with their data",
		Long: `Delete file systems with their data, each named by its name or id. One that has access points is refused: volumes of claims
are such, and go with the claims.`,
		Example: `  muster delete filesystem shared`,
	})
}

// refuseInUse refuses to delete a file system of volumes, before the management plane marks it.
func refuseInUse(ctx context.Context, p *kinds.Client, object client.Object) error {
	system, ok := object.(*v1alpha1.FileSystem)
	if !ok {
		return nil
	}
	var all v1alpha1.AccessPointList
	if err := p.ReadAll(ctx, &all); err != nil {
		return err
	}
	used, example := 0, ""
	for i := range all.Items {
		if point := &all.Items[i]; point.Spec.FileSystemID == system.Name {
			used, example = used+1, point.Name
			if point.Spec.ClusterName != "" {
				example += " of cluster " + point.Spec.ClusterName
			}
		}
	}
	if used > 0 {
		return fmt.Errorf("file system %q has %s, such as %s: delete the claims that they are volumes of, or them by "+
			"`kubectl --context muster-management delete accesspoint`", kinds.NameOf(system), terminal.Count(used, "access point", "access points"), example)
	}
	var snapshots v1alpha1.VolumeSnapshotList
	if err := p.ReadAll(ctx, &snapshots); err != nil {
		return err
	}
	for i := range snapshots.Items {
		if snapshot := &snapshots.Items[i]; snapshot.Spec.FileSystemID == system.Name {
			used, example = used+1, snapshot.Name+" of cluster "+snapshot.Spec.ClusterName
		}
	}
	if used > 0 {
		return fmt.Errorf("file system %q has %s of volumes, such as %s: delete the VolumeSnapshots of the cluster, or them by "+
			"`kubectl --context muster-management delete volumesnapshot`", kinds.NameOf(system), terminal.Count(used, "snapshot", "snapshots"), example)
	}
	return nil
}
