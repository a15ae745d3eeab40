// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
)

func (d *deleteCommand) addons() *cobra.Command {
	cmd := d.finish(&cobra.Command{
		Use:     "addon NAME...",
		Aliases: []string{"addons"},
		Short:   "Delete add-ons and their objects in the cluster",
		Long: `Delete add-ons, and with them their objects in the cluster: a cluster whose coredns goes has no DNS. With --preserve the objects
stay, and nobody looks after them any more.`,
		Example: `  # Delete an add-on with what it has in the cluster
  muster delete addon coredns

  # Leave the objects in the cluster
  muster delete addon coredns --preserve`,
	})
	kinds.AddClusterFlag(cmd, d.Options, d.planes, &d.cluster, "cluster of the add-ons (default: the only one there is)")
	cmd.Flags().BoolVar(&d.preserve, "preserve", false, "leave the objects in the cluster")
	return cmd
}

// keep has an add-on's objects stay when it is deleted, if that is asked for.
func (d *deleteCommand) keep(ctx context.Context, p *kinds.Client, object client.Object) error {
	found, ok := object.(*v1alpha1.Addon)
	if !ok || found.Spec.Preserve == d.preserve {
		return nil
	}
	before := found.DeepCopy()
	found.Spec.Preserve = d.preserve
	return p.Explain(p.Patch(ctx, found, client.MergeFrom(before)))
}
