// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/machine/capacity"
)

// NewScaleCommand returns "muster scale".
func NewScaleCommand(o *terminal.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Change the number of machines of a node group",
		Args:  oneOf("nodegroup"),
		RunE:  terminal.NothingToDo,
	}
	cmd.AddCommand((&scaleCommand{Options: o, planes: kinds.NewDialers(), interval: terminal.WaitInterval, host: servicestatus.ThisHost}).command())
	return cmd
}

// scaleCommand holds the flags of "muster scale nodegroup".
type scaleCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	interval time.Duration
	host     func() capacity.Host

	nodes, minimum, maximum int32
	cluster                 string
	wait                    bool
	timeout                 time.Duration
}

func (s *scaleCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "nodegroup NAME [N]",
		Aliases: []string{"nodegroups", "ng"},
		Short:   "Change the number of machines of a node group",
		Long: `Change the number of machines of a node group. New machines join by themselves. Of machines that go, the pods are evicted first, as
disruption budgets allow, for 15 minutes at most; then the Node, the bootstrap token and the pending certificate signing requests go too.`,
		Example: `  # Five machines; return when all five nodes are Ready
  muster scale nodegroup default 5 --wait

  # None at all
  muster scale nodegroup default 0

  # Let it grow to twenty, and do
  muster scale nodegroup default --nodes 20 --max 20`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	cmd.ValidArgsFunction = kinds.CompleteNames(s.Options, s.planes, kinds.NodeGroups(), 1)
	flags := cmd.Flags()
	flags.Int32VarP(&s.nodes, "nodes", "N", 0, "number of machines; also --replicas")
	flags.Int32Var(&s.minimum, "min", 0, "fewest machines the group may be scaled to, from now on")
	flags.Int32Var(&s.maximum, "max", 0, "most machines the group may be scaled to, from now on")
	kinds.AddClusterFlag(cmd, s.Options, s.planes, &s.cluster, "cluster of the node group (default: the only one there is)")
	flags.BoolVar(&s.wait, "wait", false, "return when as many nodes are Ready")
	flags.DurationVar(&s.timeout, "timeout", 5*time.Minute, "how long to --wait")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "replicas" { // as kubectl scale calls it
			name = "nodes"
		}
		return pflag.NormalizedName(name)
	})
	return cmd
}

func (s *scaleCommand) run(cmd *cobra.Command, args []string) error {
	flags := cmd.Flags()
	switch {
	case len(args) == 2 && flags.Changed("nodes"):
		return terminal.UsageError{Err: errors.New("give the number of machines once: as an argument or as --nodes")}
	case len(args) == 2:
		n, err := size(args[1])
		if err != nil {
			return terminal.UsageError{Err: err}
		}
		s.nodes = n
	case !flags.Changed("nodes"):
		return terminal.UsageError{Err: fmt.Errorf("give the number of machines: muster scale nodegroup %s N", args[0])}
	case s.nodes < 0:
		return terminal.UsageError{Err: fmt.Errorf(`invalid number of machines "%d": must be a whole number, 0 or more`, s.nodes)}
	}
	ctx, name := cmd.Context(), args[0]
	p, err := s.planes.Management(s.Options)
	if err != nil {
		return err
	}
	group, err := p.NodeGroup(ctx, s.cluster, name)
	if err != nil {
		return err
	}
	wanted := v1alpha1.ScalingConfig{
		DesiredSize: s.nodes, MinSize: group.Spec.ScalingConfig.MinSize, MaxSize: group.Spec.ScalingConfig.MaxSize,
	}
	if flags.Changed("min") {
		wanted.MinSize = s.minimum
	}
	if flags.Changed("max") {
		wanted.MaxSize = s.maximum
	}
	if err := checkScale(kinds.NameOf(group), wanted); err != nil {
		return err
	}
	did := "unchanged"
	if wanted != group.Spec.ScalingConfig {
		changed := group.DeepCopy()
		changed.Spec.ScalingConfig = wanted
		tellClaims(ctx, s.Err, p, s.host(), changed)
		if err := p.Scale(ctx, group, wanted); err != nil {
			return err
		}
		did = "scaled"
	}
	if _, err := fmt.Fprintln(s.Out, kinds.NodeGroups().Qualified(kinds.NameOf(group)), did); err != nil || !s.wait {
		return err
	}
	return kinds.WaitForNodes(ctx, s.Err, p, kinds.WaitConfig{Group: group, Timeout: s.timeout, Interval: s.interval})
}

// checkScale refuses a size outside the group's bounds.
func checkScale(name string, s v1alpha1.ScalingConfig) error {
	switch {
	case s.DesiredSize < s.MinSize:
		return fmt.Errorf("nodegroup %q has at least %s (spec.scalingConfig.minSize): take --nodes %d, or --min %d as well",
			name, terminal.Count(s.MinSize, "machine", "machines"), s.MinSize, s.DesiredSize)
	case s.DesiredSize > s.MaxSize:
		return fmt.Errorf("nodegroup %q has at most %s (spec.scalingConfig.maxSize): take --nodes %d, or --max %d as well",
			name, terminal.Count(s.MaxSize, "machine", "machines"), s.MaxSize, s.DesiredSize)
	}
	return nil
}
