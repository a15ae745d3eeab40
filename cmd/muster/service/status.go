// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/table"
)

// NewStatusCommand returns "muster status".
func NewStatusCommand(o *terminal.Options) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the service, its clusters, their components and node groups",
		Long: `Show the service with the components that all clusters share, and of each cluster its components, its node groups, and the reason of each
machine that is not Ready. USER is the user of the host that a component runs as. SINCE is when its process was started, and RESTARTS how often it had to be started again, whether or not the service
was. Exit code 1 means that something is not as configured.`,
		Example: `  muster status
  muster status -o json | jq '.clusters[].components[] | select(.state != "Ready")'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := o.OpenExisting()
			if err != nil {
				return err
			}
			status, err := controlsocket.NewClient(dir).Status(cmd.Context())
			if errors.Is(err, controlsocket.ErrNotRunning) {
				running, findErr := guard.Running(dir)
				if findErr != nil {
					return findErr
				}
				if len(running) > 0 {
					return fmt.Errorf("the service does not answer, and %s without it: `muster up` takes over what runs, `muster down` stops it", terminal.Count(len(running), "process goes on", "processes go on"))
				}
				return errors.New("everything is stopped: `muster up` starts it")
			}
			if err != nil {
				return err
			}
			if format != terminal.FormatTable {
				if err := terminal.PrintData(o.Out, format, status); err != nil {
					return err
				}
				if !status.Ready() { // which the data says
					return terminal.ExitStatus(1)
				}
				return nil
			}
			if err := printStatus(o, status); err != nil {
				return err
			}
			if status.Looking {
				return fmt.Errorf("the service has just begun, and is looking for its clusters%s", kinds.Because(status.Message))
			}
			for _, cluster := range status.Clusters {
				if !cluster.AsAsked() {
					return fmt.Errorf("cluster %s is not yet as configured%s", cluster.Name, kinds.Because(cmp.Or(cluster.Message, status.Message)))
				}
			}
			return nil
		},
	}
	terminal.AddOutputFlag(cmd, &format)
	return cmd
}

func printStatus(o *terminal.Options, status servicestatus.Status) error {
	now := time.Now()
	fmt.Fprintf(o.Out, "Service   process %d, up %s, state in %s\n\n", status.PID, duration.HumanDuration(now.Sub(status.Started)), status.StateDir)
	if err := printComponents(o, status.Components, now); err != nil {
		return err
	}
	printNotes(o.Out, status.Notes)
	if status.UnlimitedMemory != "" {
		printNotes(o.Out, []string{"API servers run without a memory limit: " + status.UnlimitedMemory})
	}
	if status.NoOwnUsers != "" {
		printNotes(o.Out, []string{"control planes run as the user of the service: " + status.NoOwnUsers})
	}
	for _, cluster := range status.Clusters {
		fmt.Fprintf(o.Out, "\nCluster   %s  %s  %s\n\n", cluster.Name, terminal.OrDash(cluster.Version), cluster.Endpoint)
		if err := printCluster(o, cluster, now); err != nil {
			return err
		}
	}
	if text := status.Host.Overcommitted(); text != "" {
		fmt.Fprintf(o.Err, "\n%s\n", text)
	}
	return nil
}

// printCluster shows the components and node groups of one cluster, and its machines that are not as they should be.
func printCluster(o *terminal.Options, cluster servicestatus.Cluster, now time.Time) error {
	if err := printComponents(o, cluster.Components, now); err != nil {
		return err
	}
	fmt.Fprintln(o.Out)
	t := table.New(o.Out, "NODE GROUP", "PROVIDER", "VERSION", "ISOLATION", "DESIRED", "MACHINES", "READY", "MESSAGE")
	for _, g := range cluster.NodeGroups {
		t.Row(g.Name, string(g.Provider), terminal.OrDash(g.Version), terminal.OrDash(string(g.Isolation)), strconv.Itoa(int(g.Desired)), strconv.Itoa(int(g.Machines)), strconv.Itoa(int(g.Ready)), terminal.OrDash(g.Message))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printNotes(o.Out, cluster.Notes)
	return printTroubledMachines(o, cluster.Machines)
}

// printNotes prints what an operator should know.
func printNotes(out io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintln(out, "\nNote: "+note+".")
	}
}

func printComponents(o *terminal.Options, components []runner.Status, now time.Time) error {
	t := table.New(o.Out, "COMPONENT", "STATE", "PROCESS", "USER", "RESTARTS", "SINCE", "MESSAGE")
	for _, c := range components {
		process, user, since := "-", "-", c.Since
		if c.PID != 0 {
			process, user = strconv.Itoa(c.PID), "root"
			if c.User != 0 {
				user = strconv.FormatUint(uint64(c.User), 10)
			}
		}
		if !c.Started.IsZero() {
			since = c.Started
		}
		t.Row(c.Name, string(c.State), process, user, strconv.Itoa(c.Restarts), duration.HumanDuration(now.Sub(since)), terminal.OrDash(c.Message))
	}
	return t.Flush()
}

// printTroubledMachines shows the machines that are not as they should be, and why.
func printTroubledMachines(o *terminal.Options, machines []servicestatus.Machine) error {
	t := table.New(o.Out, "MACHINE", "NODE", "PHASE", "MESSAGE")
	troubled := false
	for _, m := range machines {
		if m.Message != "" {
			t.Row(m.Name, terminal.OrDash(m.NodeName), string(m.Phase), m.Message)
			troubled = true
		}
	}
	if !troubled {
		return nil
	}
	fmt.Fprintln(o.Out)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(o.Err, "What goes on in a machine is in its log: muster logs MACHINE")
	return nil
}
