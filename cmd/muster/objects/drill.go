// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/machine"
)

const (
	// drillEnd takes the place of a kind of drill.
	drillEnd = "end"
	// noticeTime is how long before an interruption EC2 announces it.
	noticeTime = 2 * time.Minute
	// drillTime is longer than a cluster takes to see that a node is silent, and than a node group's shortest time of repair.
	drillTime = 5 * time.Minute
	// mostDrillTime bounds a drill that somebody forgets.
	mostDrillTime = 24 * time.Hour
)

// drillCommand holds the flags of "muster drill".
type drillCommand struct {
	*terminal.Options
	planes kinds.Dialers
	now    func() time.Time

	lasts  time.Duration
	output string
}

// NewDrillCommand returns "muster drill".
func NewDrillCommand(o *terminal.Options) *cobra.Command {
	return (&drillCommand{Options: o, planes: kinds.NewDialers(), now: time.Now}).command()
}

func drillWords() []string {
	words := make([]string, 0, len(v1alpha1.DrillKinds())+1)
	for _, kind := range v1alpha1.DrillKinds() {
		words = append(words, string(kind))
	}
	return append(words, drillEnd)
}

func (c *drillCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drill MACHINE KIND",
		Short: "Have a machine in trouble for a while, to see what comes of it",
		Long: `Have a local machine in trouble for a while, to see what comes of it. The trouble is real, and ends by itself.

Announced in instance metadata, and done when the time is up:
  spot-interruption  the machine is terminated, and no pod is waited for
  maintenance        the machine reboots
  rebalance          nothing: it is a recommendation

For the time:
  stop               the machine is stopped; its node group replaces it, unless that suspends ReplaceUnhealthy
  disk-full          the machine's disk is full; the host's is not
  no-network         no packet reaches the machine or leaves it
  kubelet            the machine has no kubelet
  containerd         the machine has no containerd

At once:
  reboot             the machine reboots

"muster drill MACHINE end" ends a drill early; what it announced does not happen then. Another drill takes the place of one that goes on.
A drill is a field of the Machine, spec.drill: it goes on if this command or the service ends. There is no drill of the clock, because a local machine has that of the host.`,
		Example: `  # Two minutes of notice, then the machine is gone
  muster drill i-0123456789abcdef0 spot-interruption

  # What node repair sees of a machine without a kubelet, by the name of its node
  muster drill ip-172-31-0-5.ec2.internal kubelet --for 3m
  muster get machines

  # Enough
  muster drill ip-172-31-0-5.ec2.internal end`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args[0], args[1], cmd.Flags().Changed("for"))
		},
	}
	names := kinds.CompleteNames(c.Options, c.planes, kinds.Machines(), 1)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return drillWords(), cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, args, toComplete)
	}
	cmd.Flags().DurationVar(&c.lasts, "for", 0, "how long it lasts (default 2m for what is announced, else 5m)")
	terminal.AddOutputFlag(cmd, &c.output)
	return cmd
}

// wanted is the drill that the arguments ask for; nil for none.
func (c *drillCommand) wanted(kind string, chosen bool) (*v1alpha1.MachineDrill, error) {
	switch {
	case kind == "clock":
		return nil, terminal.UsageError{Err: errors.New("there is no drill of the clock: a local machine has the host's clock, and would take the host's time along")}
	case !slices.Contains(drillWords(), kind):
		return nil, terminal.UsageError{Err: fmt.Errorf("there is no drill %q: there are %s", kind, strings.Join(drillWords(), ", "))}
	case chosen && (kind == drillEnd || kind == string(v1alpha1.DrillReboot)):
		return nil, terminal.UsageError{Err: fmt.Errorf("%s happens at once: leave --for out", kind)}
	case chosen && (c.lasts < time.Second || c.lasts > mostDrillTime):
		return nil, terminal.UsageError{Err: fmt.Errorf("--for %s: a drill lasts from 1s to %s", c.lasts, mostDrillTime)}
	case kind == drillEnd:
		return nil, nil
	}
	lasts := drillTime
	switch v1alpha1.DrillKind(kind) {
	case v1alpha1.DrillSpotInterruption, v1alpha1.DrillMaintenance, v1alpha1.DrillRebalance:
		lasts = noticeTime
	case v1alpha1.DrillReboot:
		lasts = 0
	case v1alpha1.DrillStop, v1alpha1.DrillDiskFull, v1alpha1.DrillNoNetwork, v1alpha1.DrillKubelet, v1alpha1.DrillContainerd:
	}
	if chosen {
		lasts = c.lasts
	}
	began := metav1.NewMicroTime(c.now().Truncate(time.Microsecond))
	return &v1alpha1.MachineDrill{Kind: v1alpha1.DrillKind(kind), Began: began, Ends: metav1.NewTime(began.Add(lasts).Add(time.Second - 1).Truncate(time.Second))}, nil
}

func (c *drillCommand) run(ctx context.Context, name, kind string, chosen bool) error {
	drill, err := c.wanted(kind, chosen)
	if err != nil {
		return err
	}
	p, err := c.planes.Management(c.Options)
	if err != nil {
		return err
	}
	m, err := c.find(ctx, p, name)
	if err != nil {
		return err
	}
	before := m.DeepCopy()
	m.Spec.Drill = drill
	if err := p.Within(ctx, func(ctx context.Context) error { return p.Patch(ctx, m, client.MergeFrom(before)) }); err != nil {
		return err
	}
	if c.output != terminal.FormatTable {
		return (&kinds.Printer{Out: c.Out, Scheme: p.Scheme(), Kind: kinds.Machines(), Format: c.output, Now: c.now}).Object(m)
	}
	said := fmt.Sprintf("%s has no drill any more", kinds.Machines().Qualified(m.Name))
	if drill != nil {
		said = fmt.Sprintf("%s: drill %s until %s; muster drill %s end ends it", kinds.Machines().Qualified(m.Name), drill.Kind, drill.Ends.UTC().Format(time.RFC3339), m.Name)
	}
	_, err = fmt.Fprintln(c.Out, said)
	return err
}

// find returns the machine of a name, if it can have a drill.
func (c *drillCommand) find(ctx context.Context, p *kinds.Client, name string) (*v1alpha1.Machine, error) {
	all, _, err := p.Objects(ctx, kinds.Machines())
	if err != nil {
		return nil, err
	}
	found, err := kinds.Machines().Choose(all, []string{name})
	if err != nil {
		return nil, err
	}
	m := found[0].(*v1alpha1.Machine)
	switch {
	case c.Cluster != "" && m.Spec.ClusterName != c.Cluster:
		return nil, fmt.Errorf("machine %s is of cluster %q, and --cluster says %q: leave --cluster out, or name a machine of that one", m.Name, m.Spec.ClusterName, c.Cluster)
	case !m.Spec.Provider.Can(v1alpha1.RunPods):
		return nil, fmt.Errorf("machine %s has no drills: %w", m.Name, machine.CannotError{Provider: m.Spec.Provider, Do: v1alpha1.RunPods})
	case m.Spec.ClusterName == "":
		return nil, fmt.Errorf("machine %s is of no cluster, and has no drills: name a machine of a cluster", m.Name)
	case !m.DeletionTimestamp.IsZero():
		return nil, fmt.Errorf("machine %s is being deleted, and has no drills: muster get machines shows others", m.Name)
	}
	return m, nil
}
