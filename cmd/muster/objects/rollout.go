// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
)

// NewRolloutCommand returns "muster rollout".
func NewRolloutCommand(o *terminal.Options) *cobra.Command {
	cmd := &cobra.Command{Use: "rollout", Short: "Undo a rollout of a node group", Args: oneOf("undo"), RunE: terminal.NothingToDo}
	undo := &cobra.Command{Use: "undo", Short: "Take a node group back to what it was before its last rollout", Args: oneOf("nodegroup"), RunE: terminal.NothingToDo}
	undo.AddCommand((&undoCommand{Options: o, planes: kinds.NewDialers(), interval: terminal.WaitInterval}).ofNodeGroup())
	cmd.AddCommand(undo)
	return cmd
}

// undoCommand holds the flags of "muster rollout undo nodegroup".
type undoCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	interval time.Duration

	cluster     string
	force, wait bool
	timeout     time.Duration
}

func (c *undoCommand) ofNodeGroup() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "nodegroup NAME",
		Aliases: []string{"nodegroups", "ng"},
		Short:   "Take a node group back to the version and the launch template of before",
		Long: `Take a node group back to the version and the launch template that it had before the last update that rolled it out, whether that
has ended, failed or goes on: one that goes on ends first. Machines that are of these still keep running, the others are replaced.

It is done by an Update: interrupted, this command leaves it to the service. Called again, it goes forth again.`,
		Example: `  # After an update that failed half-way
  muster rollout undo nodegroup default --wait`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	cmd.ValidArgsFunction = kinds.CompleteNames(c.Options, c.planes, kinds.NodeGroups(), 1)
	kinds.AddClusterFlag(cmd, c.Options, c.planes, &c.cluster, "cluster of the node group (default: the only one there is)")
	flags := cmd.Flags()
	flags.BoolVar(&c.force, "force", false, "terminate machines although their pods cannot be evicted in time")
	flags.BoolVar(&c.wait, "wait", false, "return when all machines are replaced; 1 is the exit code if it failed")
	flags.DurationVar(&c.timeout, "timeout", upgradeTime, "how long to --wait")
	return cmd
}

func (c *undoCommand) run(ctx context.Context, name string) error {
	p, err := c.planes.Management(c.Options)
	if err != nil {
		return err
	}
	cluster, err := clusterOf(ctx, p, c.cluster)
	if err != nil {
		return err
	}
	group, err := p.NodeGroup(ctx, cluster.Spec.Name, name)
	if err != nil {
		return err
	}
	rollout := group.Spec.Rollout
	if rollout == nil || rollout.Before == nil {
		return fmt.Errorf("nothing is known of what node group %q was of before, because no update has rolled it out: muster upgrade nodegroup %s --version takes it to a version", name, name)
	}
	u := &v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, GenerateName: "undo-"}, Spec: v1alpha1.UpdateSpec{
		ClusterName: cluster.Spec.Name, NodeGroup: group.Spec.Name, TargetUID: string(group.UID), Type: v1alpha1.UpdateVersion,
		Change: v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{Undo: true, Force: c.force}},
	}}
	if err := p.Within(ctx, func(ctx context.Context) error { return p.Create(ctx, u) }); err != nil {
		return err
	}
	goesBack := fmt.Sprintf("%s goes back to what it was before %s: update %s\n", kinds.NodeGroups().Qualified(name), rollout.ID, u.Name)
	if _, err := fmt.Fprint(c.Out, goesBack); err != nil || !c.wait {
		return err
	}
	ended, err := kinds.WaitForUpdate(ctx, c.Err, p, client.ObjectKeyFromObject(u), c.timeout, c.interval)
	if err != nil {
		return err
	}
	if ended.Phase() != v1alpha1.UpdateSuccessful {
		return fmt.Errorf("node group %q is not taken back: update %s is %s: %s", name, u.Name, ended.Phase(), kinds.UpdateMessage(ended))
	}
	_, err = fmt.Fprintf(c.Out, "%s is of %s again, after %s\n", kinds.NodeGroups().Qualified(name), terminal.Or(rollout.Before.Version, "its version"), ended.Status.FinishedAt.Sub(ended.CreationTimestamp.Time))
	return err
}
