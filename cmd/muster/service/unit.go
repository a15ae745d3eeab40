// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/session"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/serviceunit"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/systemd"
)

// NewServiceCommand returns "muster service".
func NewServiceCommand(o *terminal.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Have systemd bring this installation back after a reboot or a power loss",
		Long: `Have systemd bring this installation back after a reboot or a power loss: install writes a unit, uninstall takes it away.

A unit is of one state directory, and several live side by side. It starts the service and ends; processes are supervised by
Muster, so "systemctl restart" and "systemctl stop" end none of them. "muster down" does.`,
	}
	cmd.AddCommand(newInstallCommand(o), newUninstallCommand(o), newStartCommand(o))
	return cmd
}

func newInstallCommand(o *terminal.Options) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Write, enable and start a unit of systemd for this installation (needs root)",
		Long: `Write, enable and start a unit of systemd for this installation, which needs root. Run again, it changes nothing; it writes the
unit anew if the state directory is the same and the programs lie elsewhere by now. A file of the same name that is not of this
installation is refused.`,
		Example: `  # This installation comes back after a reboot
  muster service install

  # Another one beside it
  muster service install --state-dir /srv/muster

  # What would be written
  muster service install --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			unit, err := unitOf(o)
			if err != nil {
				return err
			}
			if dryRun {
				content, err := unit.Render()
				if err != nil {
					return err
				}
				_, err = io.WriteString(o.Out, content)
				return err
			}
			host := unitHost()
			if host.IsRoot && !unit.State.Exists() {
				return fmt.Errorf("nothing is set up in %s yet: run `muster up` once", unit.State)
			}
			changed, err := host.Install(cmd.Context(), unit)
			if err != nil {
				return err
			}
			tellInstalled(o.Err, host, unit, changed)
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the unit, and change nothing")
	return cmd
}

// tellInstalled says what an installation of a unit came to.
func tellInstalled(w io.Writer, host serviceunit.Host, unit serviceunit.Unit, changed bool) {
	was := "Unit %s is as it should be already"
	if changed {
		was = "Wrote unit %s"
	}
	fmt.Fprintf(w, was, host.Path(unit))
	if host.Systemd == nil {
		fmt.Fprintf(w, "; systemd does not run here: once it does, run `systemctl enable --now %s`\n", unit.Name())
		return
	}
	fmt.Fprintln(w, "; it is enabled, and the installation runs.")
}

func newUninstallCommand(o *terminal.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Take the unit of systemd of this installation away (needs root)",
		Long: `Take the unit of systemd of this installation away, which needs root. What runs goes on, and nothing else is removed; after the next
reboot "muster up" is needed.`,
		Example: `  muster service uninstall`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			unit, err := unitOf(o)
			if err != nil {
				return err
			}
			host := unitHost()
			if !host.IsRoot {
				return serviceunit.ErrNotRoot
			}
			removed, err := host.Uninstall(cmd.Context(), unit)
			if err != nil {
				return err
			}
			if !removed {
				fmt.Fprintf(o.Err, "There is no unit %s.\n", host.Path(unit))
				return nil
			}
			fmt.Fprintf(o.Err, "Removed unit %s; what runs goes on.\n", host.Path(unit))
			return nil
		},
	}
}

// newStartCommand returns what the unit runs.
func newStartCommand(o *terminal.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "start",
		Short: "Start the service of this installation, which brings its clusters back, and return when it answers",
		Long: `Start the service of this installation in the background, and return when it answers; the service brings all clusters back as they
were. The unit of "muster service install" runs it. A service that runs is left alone, and one of another program replaced.`,
		Example: `  muster service start`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := o.OpenExisting()
			if err != nil {
				return err
			}
			running, err := session.Resume(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if running {
				fmt.Fprintf(o.Err, "The service of %s runs already; nothing was changed.\n", dir)
				return nil
			}
			fmt.Fprintf(o.Err, "The service of %s runs.\n", dir)
			return nil
		},
	}
}

// unitOf is the unit of the state directory that the command line names.
func unitOf(o *terminal.Options) (serviceunit.Unit, error) {
	dir, err := o.Open()
	if err != nil {
		return serviceunit.Unit{}, err
	}
	return unitIn(dir)
}

func unitIn(dir statedir.Dir) (serviceunit.Unit, error) {
	binDir, err := programs.Dir()
	return serviceunit.Unit{State: dir, Program: filepath.Join(binDir, "muster")}, err
}

// unitHost is this host.
func unitHost() serviceunit.Host {
	host := serviceunit.Host{IsRoot: os.Geteuid() == 0}
	if systemd.Booted("") {
		host.Systemd = manager()
	}
	return host
}

// manager is systemd. Where its program cannot be found, that is an error once there is something to tell it, and no reason
// to leave an installation without a unit running.
func manager() serviceunit.Manager {
	control, err := systemd.New(systemd.Config{})
	if err != nil {
		return lacking{err}
	}
	return control
}

// lacking is a systemd that cannot be told anything, and says why.
type lacking struct{ err error }

// Do implements [serviceunit.Manager].
func (l lacking) Do(context.Context, systemd.Verb, ...string) error { return l.err }
