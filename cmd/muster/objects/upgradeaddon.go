// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/cloud/eks/eksclient"
	"muster.dev/muster/internal/platform/release"
)

// ofAddon returns "muster upgrade addon".
func (c *upgradeCommand) ofAddon() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "addon NAME",
		Aliases: []string{"addons"},
		Short:   "Bring an EKS add-on of a cluster to another version",
		Long: `Bring an EKS add-on of a cluster to another version, as aws eks update-addon does. Its other settings stay as they are.

Called again while the upgrade goes on, it waits for the same upgrade. An add-on that has the version already stays as it is.`,
		Example: `  # To the newest version that fits the cluster; return when the add-on is ACTIVE
  muster upgrade addon kube-proxy --wait

  # Which versions there are
  aws eks describe-addon-versions --addon-name kube-proxy --kubernetes-version 1.37`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), func(ctx context.Context, p *kinds.Client) (*upgrade, error) { return c.planAddon(ctx, p, args[0]) })
		},
	}
	cmd.ValidArgsFunction = kinds.CompleteNames(c.Options, c.planes, kinds.Addons(), 1)
	kinds.AddClusterFlag(cmd, c.Options, c.planes, &c.cluster, "cluster of the add-on (default: the only one there is)")
	c.addFlags(cmd, "version of the add-on, such as v1.15.0-eksbuild.1 (default: the newest that fits the cluster)",
		func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) != 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return addonVersions(args[0]), cobra.ShellCompDirectiveNoFileComp
		})
	return cmd
}

// planAddon plans the upgrade of an add-on.
func (c *upgradeCommand) planAddon(ctx context.Context, p *kinds.Client, name string) (*upgrade, error) {
	cluster, err := clusterOf(ctx, p, c.cluster)
	if err != nil {
		return nil, err
	}
	k := kinds.Addons()
	objects, _, err := p.Objects(ctx, k, client.InNamespace(cluster.Namespace))
	if err != nil {
		return nil, err
	}
	chosen, err := k.Choose(objects, []string{name})
	if err != nil {
		return nil, err
	}
	found := chosen[0].(*v1alpha1.Addon)
	u := &upgrade{kind: k, of: found, is: terminal.Or(found.Status.Version, found.Spec.Version)}
	u.wanted = terminal.Or(c.version, fittingVersion(found.Spec.AddonName, cluster))
	u.done = u.wanted == u.is && (found.Spec.Version == "" || found.Spec.Version == u.wanted)
	u.version = func(update *v1alpha1.Update) string {
		if settings := update.Spec.Change.Addon; settings != nil && settings.Version != nil {
			return *settings.Version
		}
		return ""
	}
	u.ask = func(ctx context.Context, api eksAPI) (string, error) {
		return api.UpdateAddon(ctx, cluster.Spec.Name, found.Spec.AddonName, eksclient.AddonChange{
			Version: u.wanted, ServiceAccountRoleARN: found.Spec.ServiceAccountRoleARN, ResolveConflicts: string(found.Spec.ResolveConflicts),
		})
	}
	return u, nil
}

// fittingVersion is the newest version of an add-on for the release of a cluster, or "".
func fittingVersion(addon string, cluster *v1alpha1.Cluster) string {
	of, err := release.All().OfMinor(release.Minor(cluster.Status.Version))
	if err != nil {
		return ""
	}
	known, _ := catalogue.For(of).Find(addon)
	return known.Version
}
