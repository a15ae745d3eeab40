// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/power"
	"muster.dev/muster/internal/platform/logs"
	"muster.dev/muster/internal/platform/statedir"
	columns "muster.dev/muster/internal/platform/table"
)

// logsCommand holds the flags of "muster logs".
type logsCommand struct {
	*terminal.Options
	planes kinds.Dialers
	now    func() time.Time

	follow     bool
	since      time.Duration
	sinceTime  string
	tail       int
	components []string
}

// NewLogsCommand returns "muster logs".
func NewLogsCommand(o *terminal.Options) *cobra.Command {
	return (&logsCommand{Options: o, planes: kinds.NewDialers(), now: time.Now}).command()
}

func (l *logsCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs [COMPONENT | MACHINE]",
		Short: "Show the logs of a component or a machine",
		Long: `Show the log of a component of the control plane, or the logs of everything that runs on a machine, in order of time.
Without a name, list what has logs.

A machine is named by its instance id, its node's name or its private address. Logs of pods: kubectl logs.
What the account keeps of the logs of control planes is searched by muster logs query.`,
		Example: `  # What has logs
  muster logs

  # How the API server is doing
  muster logs kube-apiserver --tail 20 --follow

  # What happened on a machine in the last ten minutes
  muster logs ip-172-31-0-5.ec2.internal --since 10m

  # Its kubelet only
  muster logs i-0123456789abcdef0 --component kubelet`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: l.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, name := range []string{"follow", "since", "since-time", "tail", "component"} {
					if cmd.Flags().Changed(name) {
						return terminal.UsageError{Err: fmt.Errorf("--%s goes with the name of a component or machine; muster logs lists them", name)}
					}
				}
				return l.list()
			}
			return l.show(cmd.Context(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&l.follow, "follow", "f", false, "go on with new lines until interrupted")
	flags.DurationVar(&l.since, "since", 0, "only lines from this long ago on, as 10m or 2h")
	flags.StringVar(&l.sinceTime, "since-time", "", "only lines from this moment on, as 2026-11-20T12:00:00Z")
	flags.IntVar(&l.tail, "tail", logs.All, "only this many lines from the end; -1 for all")
	flags.StringSliceVarP(&l.components, "component", "c", nil, "of a machine, only these: node, containerd, kubelet, kube-proxy")
	_ = cmd.RegisterFlagCompletionFunc("component", cobra.FixedCompletions(machineLogs(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	cmd.AddCommand((&logsQueryCommand{Options: l.Options, now: l.now}).command())
	return cmd
}

// machineLogs are the programs that each machine has a log of.
func machineLogs() []string { return []string{"node", "containerd", "kubelet", "kube-proxy"} }

func (l *logsCommand) show(ctx context.Context, name string) error {
	cfg := logs.Config{Tail: l.tail, Follow: l.follow}
	switch {
	case l.tail < logs.All:
		return terminal.UsageError{Err: fmt.Errorf("invalid --tail %d: must be at least -1, which shows all lines", l.tail)}
	case l.since != 0 && l.sinceTime != "":
		return terminal.UsageError{Err: errors.New("give --since or --since-time, not both")}
	case l.since < 0:
		return terminal.UsageError{Err: fmt.Errorf("invalid --since %s: must be a time ago such as 10m, not in the future", l.since)}
	case l.since > 0:
		cfg.Since = l.now().Add(-l.since)
	case l.sinceTime != "":
		at, err := time.Parse(time.RFC3339, l.sinceTime)
		if err != nil {
			return terminal.UsageError{Err: fmt.Errorf("invalid --since-time %q: must be of the form 2026-11-20T12:00:00Z", l.sinceTime)}
		}
		cfg.Since = at
	}
	dir, err := l.OpenExisting()
	if err != nil {
		return err
	}
	if cfg.Sources, err = l.sources(ctx, dir, name); err != nil {
		return err
	}
	return logs.Copy(ctx, l.Out, cfg)
}

// sources finds the logs that a name means.
func (l *logsCommand) sources(ctx context.Context, dir statedir.Dir, name string) ([]logs.Source, error) {
	all := l.found(dir)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
		if s.Name == name {
			if len(l.components) > 0 {
				return nil, terminal.UsageError{Err: fmt.Errorf("--component goes with a machine; %s is a component itself", name)}
			}
			return []logs.Source{s}, nil
		}
	}
	id, err := kinds.MachineID(ctx, l.Options, l.planes, dir, name)
	if err != nil {
		if slices.Contains(machineLogs(), name) {
			return nil, fmt.Errorf("each machine has a %s of its own: muster logs MACHINE --component %s", name, name)
		}
		for _, r := range kinds.MachineRecords(dir) {
			names = append(names, r.ID, r.PrivateDNSName)
		}
		return nil, fmt.Errorf("no component or machine is named %q%s; muster logs lists what has logs", name, terminal.DidYouMean(name, names))
	}
	found := logs.Machine(dir, id)
	if len(found) == 0 {
		return nil, l.whyNone(ctx, id)
	}
	if len(l.components) == 0 {
		return found, nil
	}
	var there []string
	for _, s := range found {
		there = append(there, s.Name)
	}
	for _, wanted := range l.components {
		if !slices.Contains(there, wanted) {
			return nil, fmt.Errorf("machine %s has no log of %q; it has those of: %s", id, wanted, strings.Join(there, ", "))
		}
	}
	return slices.DeleteFunc(found, func(s logs.Source) bool { return !slices.Contains(l.components, s.Name) }), nil
}

// found are the logs of components: those of the account, and those of the cluster that --cluster names or of the only
// one there is. Where there are several, the logs of each are called CLUSTER/COMPONENT.
func (l *logsCommand) found(dir statedir.Dir) []logs.Source {
	sources := logs.Components(dir)
	if cluster, err := l.OpenCluster(); err == nil {
		sources = append(sources, logs.ClusterComponents(cluster)...)
	} else if clusters, err := dir.ListClusters(); err == nil {
		for _, cluster := range clusters {
			for _, s := range logs.ClusterComponents(cluster) {
				s.Name = cluster.Namespace() + "/" + s.Name
				sources = append(sources, s)
			}
		}
	}
	slices.SortFunc(sources, func(a, b logs.Source) int { return strings.Compare(a.Name, b.Name) })
	return sources
}

// whyNone returns an error with the reason why a machine has no logs.
func (l *logsCommand) whyNone(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, kinds.AskTime)
	defer cancel()
	var m v1alpha1.Machine
	if p, err := l.planes.Management(l.Options); err == nil && p.Read(ctx, id, &m) == nil {
		switch {
		case !m.Spec.Provider.Can(v1alpha1.KeepLogs):
			return fmt.Errorf("machine %s is %s and keeps no logs of its own: %s", id, m.Spec.Provider, machine.CannotError{Provider: m.Spec.Provider, Do: v1alpha1.KeepLogs}.Instead())
		case power.Stops(&m):
			return fmt.Errorf("machine %s is stopped, and its logs are on its disk, which is not mounted before it runs again: start it", id)
		}
	}
	return fmt.Errorf("machine %s has no logs yet: it has not booted", id)
}

// list shows what has logs.
func (l *logsCommand) list() error {
	dir, err := l.OpenExisting()
	if err != nil {
		return err
	}
	t := columns.New(l.Out, "NAME", "NODE", "LOGS", "SIZE", "WRITTEN")
	count := 0
	row := func(name, node, what string, sources []logs.Source) {
		var size int64
		var written time.Time
		for _, s := range sources {
			bytes, at := s.Size()
			size += bytes
			if at.After(written) {
				written = at
			}
		}
		count++
		t.Row(name, node, what, bytesText(size), duration.HumanDuration(max(0, l.now().Sub(written)))+" ago")
	}
	for _, s := range l.found(dir) {
		row(s.Name, "-", "-", []logs.Source{s})
	}
	for _, r := range kinds.MachineRecords(dir) {
		sources := logs.Machine(dir, r.ID)
		if len(sources) == 0 {
			continue
		}
		var names []string
		for _, s := range sources {
			names = append(names, s.Name)
		}
		row(r.ID, r.PrivateDNSName, strings.Join(names, ","), sources)
	}
	if count == 0 {
		_, err := fmt.Fprintln(l.Err, "Nothing has logs yet.")
		return err
	}
	return t.Flush()
}

// bytesText is a size for people.
func bytesText(n int64) string {
	const kibi = 1024
	switch {
	case n < kibi:
		return fmt.Sprintf("%d B", n)
	case n < kibi*kibi:
		return fmt.Sprintf("%.0f KiB", float64(n)/kibi)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/kibi/kibi)
}

// complete offers components, and machines that have records; for those nothing need run.
func (l *logsCommand) complete(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	dir, err := l.Open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, s := range l.found(dir) {
		names = append(names, cobra.CompletionWithDesc(s.Name, "component"))
	}
	for _, r := range kinds.MachineRecords(dir) {
		if _, err := os.Stat(dir.MachineLogs(r.ID)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		names = append(names, cobra.CompletionWithDesc(r.ID, r.PrivateDNSName), cobra.CompletionWithDesc(r.PrivateDNSName, r.ID))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
