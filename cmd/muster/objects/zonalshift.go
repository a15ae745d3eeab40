// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/network/zonalshift"
)

// NewZonalShiftCommand returns "muster zonal-shift".
func NewZonalShiftCommand(o *terminal.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "zonal-shift",
		Short: "Move a cluster away from an availability zone for a while",
		Args:  oneOf("start", "update", "cancel", "list"),
		RunE:  terminal.NothingToDo,
	}
	s := func() *zonalShiftCommand {
		return &zonalShiftCommand{Options: o, planes: kinds.NewDialers(), region: regionOf, now: time.Now}
	}
	cmd.AddCommand(s().start(), s().update(), s().cancel(), s().list())
	return cmd
}

// regionOf is the region of the account in the state directory.
func regionOf(o *terminal.Options) (region.Region, error) {
	dir, err := o.OpenExisting()
	if err != nil {
		return region.Region{}, err
	}
	own, err := account.Read(dir)
	return own.Region, err
}

// zonalShiftCommand holds the flags of "muster zonal-shift".
type zonalShiftCommand struct {
	*terminal.Options
	planes kinds.Dialers
	region func(*terminal.Options) (region.Region, error)
	now    func() time.Time

	cluster, expiresIn, comment, output string
	active                              bool
}

func (c *zonalShiftCommand) flags(cmd *cobra.Command, cluster bool) *cobra.Command {
	if cluster {
		kinds.AddClusterFlag(cmd, c.Options, c.planes, &c.cluster, "cluster that is meant (default: the only one there is)")
	}
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatName, createFormats()...)
	return cmd
}

// asks adds the flags of what a shift is asked for.
func (c *zonalShiftCommand) asks(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.expiresIn, "expires-in", "", "time after which the shift ends by itself, in minutes or hours, such as 120m or 20h; 72h at most")
	cmd.Flags().StringVar(&c.comment, "comment", "", "why, in 128 characters at most")
}

// ask is what the flags ask for.
func (c *zonalShiftCommand) ask(cmd *cobra.Command, zone string) zonalshift.Ask {
	ask := zonalshift.Ask{AwayFrom: zone}
	if cmd.Flags().Changed("expires-in") {
		ask.ExpiresIn = &c.expiresIn
	}
	if cmd.Flags().Changed("comment") {
		ask.Comment = &c.comment
	}
	return ask
}

func (c *zonalShiftCommand) start() *cobra.Command {
	cmd := c.flags(&cobra.Command{
		Use:   "start ZONE",
		Short: "Move a cluster away from a zone until the shift expires or is cancelled",
		Long: `Move a cluster away from an availability zone, as aws arc-zonal-shift start-zonal-shift does. Nodes there are cordoned, no Service and no
load balancer sends to pods there, and nothing is launched or repaired there. Pods are not evicted.

The cluster must have zonal shifts enabled: aws eks update-cluster-config --name NAME --zonal-shift-config enabled=true`,
		Example: `  # For two hours
  muster zonal-shift start us-east-1a --expires-in 2h --comment "power in rack 4"

  # By the zone's id, of one of several clusters
  muster zonal-shift start use1-az1 --expires-in 30m --cluster blue`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), c.began(c.ask(cmd, args[0])))
		},
	}, true)
	c.asks(cmd)
	_ = cmd.MarkFlagRequired("expires-in") // the flag exists
	return cmd
}

func (c *zonalShiftCommand) update() *cobra.Command {
	cmd := c.flags(&cobra.Command{
		Use:   "update ID",
		Short: "Give an active zonal shift another expiry or comment",
		Example: `  # Twelve more hours from now on
  muster zonal-shift update 0b1c2d3e-4f50-4172-8394-a5b6c7d8e9f0 --expires-in 12h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := c.ask(cmd, "")
			if ask.ExpiresIn == nil && ask.Comment == nil {
				return terminal.UsageError{Err: fmt.Errorf("say what is to change: --expires-in or --comment")}
			}
			return c.run(cmd.Context(), c.changed(args[0], "updated", func(s *v1alpha1.ZonalShift) error { return zonalshift.Update(s, ask, c.now()) }))
		},
	}, false)
	c.asks(cmd)
	return cmd
}

func (c *zonalShiftCommand) cancel() *cobra.Command {
	return c.flags(&cobra.Command{
		Use:   "cancel ID",
		Short: "End an active zonal shift",
		Example: `  # Nodes of the zone take pods again, and Services send there again
  muster zonal-shift cancel 0b1c2d3e-4f50-4172-8394-a5b6c7d8e9f0`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), c.changed(args[0], "cancelled", func(s *v1alpha1.ZonalShift) error { return zonalshift.Cancel(s, c.now()) }))
		},
	}, false)
}

func (c *zonalShiftCommand) list() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the zonal shifts of the account's clusters, also those that have ended",
		Example: `  # Which clusters are shifted now
  muster zonal-shift list --active

  muster zonal-shift list --cluster blue -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runList(cmd.Context()) },
	}
	kinds.AddClusterFlag(cmd, c.Options, c.planes, &c.cluster, "cluster whose shifts to show (default: all)")
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatTable, getFormats()...)
	cmd.Flags().BoolVar(&c.active, "active", false, "only shifts that are active")
	return cmd
}

// run does one thing to one shift, and says what became of it.
func (c *zonalShiftCommand) run(ctx context.Context, do func(context.Context, *kinds.Client) (*v1alpha1.ZonalShift, string, error)) error {
	if err := terminal.CheckOutput(c.output, createFormats()...); err != nil {
		return err
	}
	p, err := c.planes.Management(c.Options)
	if err != nil {
		return err
	}
	shift, did, err := do(ctx, p)
	if err != nil {
		return err
	}
	if c.output != terminal.FormatName {
		printer, err := c.printer()
		if err != nil {
			return err
		}
		return printer.Object(shift)
	}
	_, err = fmt.Fprintf(c.Out, "%s %s: cluster %s away from %s until %s\n", kinds.ZonalShifts().Qualified(shift.Name), did, shift.Spec.ClusterName, shift.Spec.AwayFrom, shift.Spec.ExpiryTime.UTC().Format(time.RFC3339))
	return err
}

// began starts a shift of the cluster that is meant.
func (c *zonalShiftCommand) began(ask zonalshift.Ask) func(context.Context, *kinds.Client) (*v1alpha1.ZonalShift, string, error) {
	return func(ctx context.Context, p *kinds.Client) (*v1alpha1.ZonalShift, string, error) {
		of, err := clusterOf(ctx, p, c.cluster)
		if err != nil {
			return nil, "", err
		}
		own, err := c.region(c.Options)
		if err != nil {
			return nil, "", err
		}
		var groups v1alpha1.NodeGroupList
		var subnets v1alpha1.SubnetList
		var shifts v1alpha1.ZonalShiftList
		for _, read := range []struct {
			into client.ObjectList
			of   []client.ListOption
		}{{&groups, []client.ListOption{client.InNamespace(of.Namespace)}}, {&subnets, nil}, {&shifts, []client.ListOption{client.InNamespace(of.Namespace)}}} {
			if err := p.ReadAll(ctx, read.into, read.of...); err != nil {
				return nil, "", err
			}
		}
		made, err := zonalshift.Start(uuid.NewString(), of, zonalshift.Zones(own, of, groups.Items, subnets.Items), shifts.Items, ask, c.now())
		if err != nil {
			return nil, "", err
		}
		return made, "started", p.Within(ctx, func(ctx context.Context) error { return p.Create(ctx, made) })
	}
}

// changed changes the shift of an id.
func (c *zonalShiftCommand) changed(id, did string, change func(*v1alpha1.ZonalShift) error) func(context.Context, *kinds.Client) (*v1alpha1.ZonalShift, string, error) {
	return func(ctx context.Context, p *kinds.Client) (*v1alpha1.ZonalShift, string, error) {
		objects, _, err := p.Objects(ctx, kinds.ZonalShifts())
		if err != nil {
			return nil, "", err
		}
		chosen, err := kinds.ZonalShifts().Choose(objects, []string{id})
		if err != nil {
			return nil, "", err
		}
		shift := chosen[0].(*v1alpha1.ZonalShift)
		before := shift.DeepCopy()
		if err := change(shift); err != nil {
			return nil, "", err
		}
		return shift, did, p.Within(ctx, func(ctx context.Context) error {
			return p.Patch(ctx, shift, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		})
	}
}

func (c *zonalShiftCommand) runList(ctx context.Context) error {
	if err := terminal.CheckOutput(c.output, getFormats()...); err != nil {
		return err
	}
	p, err := c.planes.Management(c.Options)
	if err != nil {
		return err
	}
	objects, _, err := p.Objects(ctx, kinds.ZonalShifts())
	if err != nil {
		return err
	}
	cluster := terminal.Or(c.cluster, c.Cluster)
	objects = slices.DeleteFunc(objects, func(object client.Object) bool {
		s := object.(*v1alpha1.ZonalShift)
		return cluster != "" && s.Spec.ClusterName != cluster || c.active && s.PhaseAt(c.now()) != v1alpha1.ZonalShiftActive
	})
	if len(objects) == 0 && (c.output == terminal.FormatTable || c.output == terminal.FormatWide) {
		_, err := fmt.Fprintln(c.Err, "No zonal shifts found.")
		return err
	}
	printer, err := c.printer()
	if err != nil {
		return err
	}
	return printer.Objects(objects)
}

// printer prints shifts in the format that is asked for.
func (c *zonalShiftCommand) printer() (*kinds.Printer, error) {
	scheme, err := kinds.NewScheme()
	return &kinds.Printer{Out: c.Out, Scheme: scheme, Kind: kinds.ZonalShifts(), Format: c.output, Now: c.now}, err
}
