// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/token"
)

// NewDeleteCommand returns "muster delete".
func NewDeleteCommand(o *terminal.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete clusters, node groups with their machines, Fargate profiles, add-ons, pod identity associations, single machines, file systems, or registered hosts",
		Args:  oneOf("cluster", "nodegroup", "fargateprofile", "addon", "podidentityassociation", "machine", "filesystem", "host"),
		RunE:  terminal.NothingToDo,
	}
	groups := &deleteCommand{Options: o, planes: kinds.NewDialers(), kind: kinds.NodeGroups(), interval: terminal.WaitInterval}
	single := &deleteCommand{Options: o, planes: kinds.NewDialers(), kind: kinds.Machines(), interval: terminal.WaitInterval}
	extras := &deleteCommand{Options: o, planes: kinds.NewDialers(), kind: kinds.Addons(), interval: terminal.WaitInterval}
	identities := &deleteCommand{Options: o, planes: kinds.NewDialers(), kind: kinds.PodIdentityAssociations(), interval: terminal.WaitInterval}
	profiles := &deleteCommand{Options: o, planes: kinds.NewDialers(), kind: kinds.FargateProfiles(), interval: terminal.WaitInterval}
	systems := &deleteCommand{Options: o, planes: kinds.NewDialers(), kind: kinds.FileSystems(), interval: terminal.WaitInterval}
	clusters := &deleteClusterCommand{Options: o, planes: kinds.NewDialers(), interval: terminal.WaitInterval}
	cmd.AddCommand(clusters.command(), groups.nodeGroups(), profiles.fargateProfiles(), extras.addons(), identities.podIdentityAssociations(), single.machines(), systems.fileSystems(), token.NewDeleteHostCommand(o))
	return cmd
}

// deleteCommand holds the flags of "muster delete".
type deleteCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	kind     kinds.Kind
	interval time.Duration

	cluster              string
	wait, ignoreNotFound bool
	preserve             bool // objects of add-ons
	timeout              time.Duration
}

func (d *deleteCommand) nodeGroups() *cobra.Command {
	cmd := d.finish(&cobra.Command{
		Use:     "nodegroup NAME...",
		Aliases: []string{"nodegroups", "ng"},
		Short:   "Delete node groups with all their machines",
		Long: `Delete node groups with all their machines, and of these the Nodes, the bootstrap tokens and the pending certificate
signing requests. First their pods are evicted, as disruption budgets allow, for 15 minutes at most.`,
		Example: `  # Delete a group and return when its last machine is gone
  muster delete nodegroup batch

  # Do not wait
  muster delete nodegroup batch --wait=false`,
	})
	kinds.AddClusterFlag(cmd, d.Options, d.planes, &d.cluster, "cluster of the node groups (default: the only one there is)")
	return cmd
}

func (d *deleteCommand) machines() *cobra.Command {
	return d.finish(&cobra.Command{
		Use:     "machine NAME...",
		Aliases: []string{"machines", "ma"},
		Short:   "Delete machines; their groups replace them",
		Long: `Delete machines, each named by its instance id, its node's name or its private address. Its group replaces it with a
new one. To have fewer machines, scale the group instead. First its pods are evicted, as disruption budgets allow, for 15 minutes
at most.`,
		Example: `  # Replace a machine
  muster delete machine i-0123456789abcdef0

  # The same by the name of its node, or by its address
  muster delete machine ip-172-31-0-5.ec2.internal
  muster delete machine 172.31.0.5`,
	})
}

func (d *deleteCommand) finish(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = kinds.CompleteNames(d.Options, d.planes, d.kind, 0)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), args) }
	addDeleteFlags(cmd, &d.wait, &d.timeout, &d.ignoreNotFound)
	return cmd
}

// addDeleteFlags adds the flags that every "muster delete" has.
func addDeleteFlags(cmd *cobra.Command, wait *bool, timeout *time.Duration, ignoreNotFound *bool) {
	cmd.Flags().BoolVar(wait, "wait", true, "return when they are gone")
	cmd.Flags().DurationVar(timeout, "timeout", 20*time.Minute, "how long to --wait; pods may take 15 minutes to go elsewhere")
	cmd.Flags().BoolVar(ignoreNotFound, "ignore-not-found", false, "what does not exist counts as deleted")
}

func (d *deleteCommand) run(ctx context.Context, names []string) error {
	p, err := d.planes.Management(d.Options)
	if err != nil {
		return err
	}
	var of []client.ListOption
	if d.kind.InNamespace() {
		cluster, err := p.Cluster(ctx, d.cluster)
		if err != nil {
			return err
		}
		of = append(of, client.InNamespace(v1alpha1.ClusterSlug(cluster)))
	}
	objects, _, err := p.Objects(ctx, d.kind, of...)
	if err != nil {
		return err
	}
	found, missing := d.kind.Choose(objects, names)
	if d.ignoreNotFound {
		missing = nil
	}
	for _, object := range found {
		if err := d.delete(ctx, p, object); err != nil {
			return errors.Join(missing, err)
		}
	}
	if len(found) == 0 {
		return missing
	}
	d.mentionReplacement(ctx, p, found)
	if d.wait {
		if err := d.waitUntilGone(ctx, p, found); err != nil {
			return errors.Join(missing, err)
		}
	}
	return missing
}

// delete asks for one object to be deleted: that very one, not another that has its name meanwhile.
func (d *deleteCommand) delete(ctx context.Context, p *kinds.Client, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, kinds.AnswerTime)
	defer cancel()
	if err := errors.Join(d.keep(ctx, p, object), refuseInUse(ctx, p, object)); err != nil {
		return err
	}
	uid := object.GetUID()
	var opts []client.DeleteOption
	if uid != "" {
		opts = append(opts, client.Preconditions{UID: &uid})
	}
	if err := p.Delete(ctx, object, opts...); err != nil && !apierrors.IsNotFound(err) {
		return p.Explain(err)
	}
	_, err := fmt.Fprintf(d.Out, "%s %q deleted\n", d.kind.Typed(), kinds.NameOf(object))
	return err
}

// mentionReplacement prints that the group replaces deleted machines, and the command that makes the group smaller.
func (d *deleteCommand) mentionReplacement(ctx context.Context, p *kinds.Client, deleted []client.Object) {
	count := map[client.ObjectKey]int32{}
	var order []client.ObjectKey
	for _, object := range deleted {
		m, ok := object.(*v1alpha1.Machine)
		if !ok {
			return
		}
		key := kinds.GroupOf(m)
		if count[key] == 0 {
			order = append(order, key)
		}
		count[key]++
	}
	for _, key := range order {
		var group v1alpha1.NodeGroup
		if err := p.ReadKey(ctx, key, &group); err != nil || group.DeletionTimestamp != nil {
			continue // then nothing takes their place
		}
		fewer := max(0, group.Spec.ScalingConfig.DesiredSize-count[key])
		name := kinds.NameOf(&group)
		_, _ = fmt.Fprintf(d.Err, "nodegroup %s replaces what is deleted; to have fewer machines: muster scale nodegroup %s %d\n", name, name, fewer)
	}
}

// waitUntilGone returns when the objects, and the machines of deleted groups, are gone.
func (d *deleteCommand) waitUntilGone(ctx context.Context, p *kinds.Client, deleted []client.Object) error {
	progress := terminal.NewWaitProgress(d.Err)
	defer progress.End()
	gone := map[types.UID]bool{}
	var groups []client.ObjectKey
	for _, object := range deleted {
		gone[object.GetUID()] = true
		if d.kind.Singular == kinds.NodeGroups().Singular {
			groups = append(groups, client.ObjectKeyFromObject(object))
		}
	}
	left := ""
	err := terminal.Poll(ctx, d.timeout, d.interval, func(ctx context.Context) (bool, error) {
		objects, _, err := p.Objects(ctx, d.kind)
		if err != nil {
			return false, err
		}
		there, one, many := 0, d.kind.Singular, d.kind.Plural
		waits := ""
		for _, object := range objects {
			if gone[object.GetUID()] {
				there++
				if m, ok := object.(*v1alpha1.Machine); ok {
					waits = terminal.Or(waits, kinds.Kept(m))
				}
			}
		}
		if len(groups) > 0 {
			var list v1alpha1.MachineList
			if err := p.ReadAll(ctx, &list); err != nil {
				return false, err
			}
			left := slices.DeleteFunc(list.Items, func(m v1alpha1.Machine) bool { return !slices.Contains(groups, kinds.GroupOf(&m)) })
			for i := range left {
				waits = terminal.Or(waits, kinds.Kept(&left[i]))
			}
			if there == 0 { // the groups are gone; are their machines?
				there, one, many = len(left), kinds.Machines().Singular, kinds.Machines().Plural
			}
		}
		if there > 0 {
			left = terminal.Count(there, one, many) + " not gone yet" + waits
			progress.Show(left)
		}
		return there == 0, nil
	})
	if errors.Is(err, terminal.ErrTimeUp) {
		progress.End()
		return fmt.Errorf("%s: %w; the deletion goes on: muster get %s", terminal.Or(left, "deletion"), err, d.kind.Word())
	}
	return err
}
