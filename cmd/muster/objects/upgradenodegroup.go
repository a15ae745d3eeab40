// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

// ofNodeGroup returns "muster upgrade nodegroup".
func (c *upgradeCommand) ofNodeGroup() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "nodegroup NAME",
		Aliases: []string{"nodegroups", "ng"},
		Short:   "Replace the machines of a node group by machines of another minor version of Kubernetes",
		Long: `Replace the machines of a node group by machines of another minor version of Kubernetes, as aws eks update-nodegroup-version does.
Additional machines are Ready first; then old ones are drained, as disruption budgets allow and as many at once as the group's updateConfig says.

Called again while the upgrade goes on, it waits for the same upgrade. While another update of the group is in progress, it is queued behind that. A group whose machines all have the version already stays as it is.`,
		Example: `  # To the minor of its cluster; return when all machines are replaced
  muster upgrade nodegroup default --wait

  # In a cluster of several, to a version that is not newer than the cluster's
  muster upgrade nodegroup batch --cluster blue --version 1.36 --wait`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), func(ctx context.Context, p *kinds.Client) (*upgrade, error) { return c.planNodeGroup(ctx, p, args[0]) })
		},
	}
	cmd.ValidArgsFunction = kinds.CompleteNames(c.Options, c.planes, kinds.NodeGroups(), 1)
	kinds.AddClusterFlag(cmd, c.Options, c.planes, &c.cluster, "cluster of the node group (default: the only one there is)")
	c.addFlags(cmd, "minor version of Kubernetes, such as "+release.Default().Minor()+" (default: the cluster's)",
		cobra.FixedCompletions(release.All().Minors(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// planNodeGroup plans the upgrade of a node group.
func (c *upgradeCommand) planNodeGroup(ctx context.Context, p *kinds.Client, name string) (*upgrade, error) {
	cluster, err := clusterOf(ctx, p, c.cluster)
	if err != nil {
		return nil, err
	}
	group, err := p.NodeGroup(ctx, cluster.Spec.Name, name)
	if err != nil {
		return nil, err
	}
	plane := release.Minor(cluster.Status.Version)
	u := &upgrade{kind: kinds.NodeGroups(), of: group, is: terminal.Or(group.Status.Version, plane)}
	u.wanted = terminal.Or(c.version, plane)
	if u.done, err = isOfMinor(ctx, p, group, u.is, u.wanted); err != nil {
		return nil, err
	}
	u.version = func(update *v1alpha1.Update) string {
		if rollout := update.Spec.Change.Rollout; rollout != nil {
			return rollout.Version
		}
		return ""
	}
	u.queued = &v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, GenerateName: "upgrade-"}, Spec: v1alpha1.UpdateSpec{
		ClusterName: cluster.Spec.Name, NodeGroup: group.Spec.Name, TargetUID: string(group.UID), Type: v1alpha1.UpdateVersion,
		Params: []v1alpha1.UpdateParam{{Type: "Version", Value: u.wanted}},
		Change: v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{Version: u.wanted, KeepCurrent: true}},
	}}
	u.ask = func(ctx context.Context, api eksAPI) (string, error) {
		return api.UpdateNodegroupVersion(ctx, cluster.Spec.Name, group.Spec.Name, u.wanted)
	}
	return u, nil
}

// isOfMinor reports whether a group, which is of a minor, and all of its machines are of a wanted one.
func isOfMinor(ctx context.Context, p *kinds.Client, group *v1alpha1.NodeGroup, is, wanted string) (bool, error) {
	if is != wanted {
		return false, nil
	}
	var machines v1alpha1.MachineList
	if err := p.ReadAll(ctx, &machines); err != nil {
		return false, err
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Spec.NodeGroupUID == group.UID && m.DeletionTimestamp.IsZero() && ami.Release(m.Spec.ImageID).Minor() != wanted {
			return false, nil
		}
	}
	return true, nil
}
