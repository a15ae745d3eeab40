// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	"github.com/spf13/cobra"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/release"
)

// ofCluster returns "muster upgrade cluster".
func (c *upgradeCommand) ofCluster() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster [NAME]",
		Aliases: []string{"clusters"},
		Short:   "Upgrade the control plane of a cluster by one minor version of Kubernetes",
		Long: `Upgrade the control plane of a cluster by one minor version of Kubernetes, as aws eks update-cluster-version does. No call fails. Nodes
keep their version: muster upgrade nodegroup. Add-ons, too: muster upgrade addon.

Called again while the upgrade goes on, it waits for the same upgrade. A cluster that is at the version already stays as it is.`,
		Example: `  # By one minor; return when that has ended
  muster upgrade cluster --wait

  # To a version that a script names, so that it can be run again
  muster upgrade cluster blue --version 1.37 --wait

  # Then its nodes and add-ons
  muster upgrade nodegroup default --wait
  muster upgrade addon kube-proxy --wait`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			if name != "" && c.Cluster != "" {
				return terminal.UsageError{Err: errTwice}
			}
			return c.run(cmd.Context(), func(ctx context.Context, p *kinds.Client) (*upgrade, error) { return c.planCluster(ctx, p, name) })
		},
	}
	cmd.ValidArgsFunction = kinds.CompleteNames(c.Options, c.planes, kinds.Clusters(), 1)
	c.addFlags(cmd, "minor version of Kubernetes, such as "+release.Default().Minor()+" (default: the one after the cluster's)",
		cobra.FixedCompletions(release.All().Minors(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&c.force, "force", false, "upgrade even if insights stand against it")
	return cmd
}

// planCluster plans the upgrade of the cluster of a name, or of the one that --cluster names, or of the only one.
func (c *upgradeCommand) planCluster(ctx context.Context, p *kinds.Client, name string) (*upgrade, error) {
	read := clusterNamed
	if name == "" {
		read, name = clusterOf, c.Cluster
	}
	found, err := read(ctx, p, name)
	if err != nil {
		return nil, err
	}
	u := &upgrade{kind: kinds.Clusters(), of: found, is: release.Minor(found.Status.Version)}
	u.wanted = terminal.Or(c.version, nextMinor(u.is, release.All()))
	u.done = u.wanted == u.is
	u.version = func(update *v1alpha1.Update) string { return update.Spec.Change.Version }
	u.ask = func(ctx context.Context, api eksAPI) (string, error) {
		return api.UpdateClusterVersion(ctx, found.Spec.Name, u.wanted, c.force)
	}
	return u, nil
}

// nextMinor is the first minor of a list that is newer than one, or "".
func nextMinor(minor string, releases release.List) string {
	is, err := releases.OfMinor(minor)
	if err != nil {
		return ""
	}
	for _, r := range releases {
		if r.Distance(is) > 0 {
			return r.Minor()
		}
	}
	return ""
}
