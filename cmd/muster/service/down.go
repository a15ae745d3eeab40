// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/tools"
	"muster.dev/muster/internal/cluster/takedown"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/serviceunit"
	"muster.dev/muster/internal/platform/statedir"
)

// NewDownCommand returns "muster down".
func NewDownCommand(o *terminal.Options) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster; with --delete, remove everything it ever made",
		Long: `Stop every process of the cluster: machines first, then the control plane. Everything is kept, and "muster up" starts it
again. With --delete, machines, keys, state, the contexts in your kubeconfigs and the unit of "muster service install" are removed too.

It needs no running service, and it works after any crash.`,
		Example: `  muster down
  muster down --delete`,
		RunE: func(cmd *cobra.Command, _ []string) error { return down(cmd.Context(), o, remove) },
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "remove everything that the cluster ever made")
	return cmd
}

// down stops what runs in the state directory that the command line names, and removes everything there if asked to.
func down(ctx context.Context, o *terminal.Options, remove bool) error {
	dir, err := o.Open()
	if err != nil {
		return err
	}
	unit, err := unitIn(dir)
	if err != nil {
		return err
	}
	return takeDown(ctx, o, dir, unitHost(), unit, remove)
}

// takeDown is down of a state directory with a unit. Systemd is told first: a unit that has not come up yet is started again
// every few seconds, and would bring back what has just ended.
func takeDown(ctx context.Context, o *terminal.Options, dir statedir.Dir, host serviceunit.Host, unit serviceunit.Unit, remove bool) error {
	running, err := supervise.New(supervise.Config{State: dir, Log: newLogger(o)}) // which starts nothing
	if err != nil {
		return err
	}
	told := host.Stopped(ctx, unit)
	count := 0
	if err := takedown.Stop(ctx, dir, running, func(what string, n int) {
		count += n
		fmt.Fprintf(o.Err, "Stopped %s (%d)\n", what, n)
	}); err != nil {
		return errors.Join(told, err)
	}
	if remove {
		return errors.Join(removeUnit(ctx, o, host, unit), removeState(ctx, o, dir))
	}
	if count == 0 {
		fmt.Fprintln(o.Err, "Nothing was running.")
	}
	return told
}

// removeState removes the state directory of an installation that has stopped, and its contexts in kubeconfigs.
func removeState(ctx context.Context, o *terminal.Options, dir statedir.Dir) error {
	written, err := tools.WrittenKubeconfigs(dir)
	if err != nil {
		return err
	}
	if err := tools.CleanKubeconfigs(o, dir, written); err != nil {
		return err
	}
	before := entries(dir)
	mounted, err := takedown.Delete(ctx, dir)
	if err != nil {
		return err
	}
	if len(mounted) > 0 {
		fmt.Fprintf(o.Err, "Removed everything in %s; what is mounted on %s is empty, and stays mounted\n", dir, strings.Join(mounted, " and "))
		return nil
	}
	if entries(dir) == before {
		fmt.Fprintf(o.Err, "Nothing of muster's was in %s: there was nothing to remove. Another state directory is named with --state-dir.\n", dir)
		return nil
	}
	fmt.Fprintf(o.Err, "Removed everything in %s\n", dir)
	return nil
}

// removeUnit removes the installation's unit of systemd, if there is one. Another's file of that name stays.
func removeUnit(ctx context.Context, o *terminal.Options, host serviceunit.Host, unit serviceunit.Unit) error {
	removed, err := host.Uninstall(ctx, unit)
	if errors.Is(err, serviceunit.ErrForeign) {
		return nil
	}
	if removed {
		fmt.Fprintf(o.Err, "Removed unit %s\n", host.Path(unit))
	}
	return err
}

// entries counts what is in a directory; -1 if there is no directory.
func entries(dir statedir.Dir) int {
	found, err := os.ReadDir(string(dir))
	if err != nil {
		return -1
	}
	return len(found)
}
