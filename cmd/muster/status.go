// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/internal/cluster"
	"muster.dev/muster/internal/table"
)

func newStatusCommand(o *options) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the service, its components and its node groups",
		Long: `Show the service, its components and its node groups, and of each machine that is not Ready why it is not. Exit code 1 means that
something is not as it was asked for.`,
		Example: `  muster status
  muster status -o json | jq '.components[] | select(.state != "Ready")'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := o.openExisting()
			if err != nil {
				return err
			}
			status, err := cluster.NewClient(dir).Status(cmd.Context())
			if errors.Is(err, cluster.ErrNotRunning) {
				running, findErr := cluster.Running(dir)
				if findErr != nil {
					return findErr
				}
				if len(running) > 0 {
					return fmt.Errorf("the service does not answer, and %s without it: `muster up` takes over what runs, `muster down` stops it", count(len(running), "process goes on", "processes go on"))
				}
				return errors.New("the cluster is stopped: `muster up` starts it")
			}
			if err != nil {
				return err
			}
			if format != formatTable {
				if err := printData(o.out, format, status); err != nil {
					return err
				}
			} else if err := printStatus(o, status); err != nil {
				return err
			}
			if !status.Ready() {
				return errors.New("not everything is as it was asked for yet" + because(status.Message))
			}
			return nil
		},
	}
	addOutputFlag(cmd, &format)
	return cmd
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

func printStatus(o *options, status cluster.Status) error {
	now := time.Now()
	fmt.Fprintf(o.out, "Cluster   %s  %s  %s\nService   process %d, up %s, state in %s\n\n", status.Cluster.Name, orDash(status.Cluster.Version), status.Cluster.Endpoint,
		status.PID, duration.HumanDuration(now.Sub(status.Started)), status.StateDir)
	t := table.New(o.out, "COMPONENT", "STATE", "PROCESS", "RESTARTS", "SINCE", "MESSAGE")
	for _, c := range status.Components {
		process := "-"
		if c.PID != 0 {
			process = strconv.Itoa(c.PID)
		}
		t.Row(c.Name, string(c.State), process, strconv.Itoa(c.Restarts), duration.HumanDuration(now.Sub(c.Since)), orDash(c.Message))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(o.out)
	t = table.New(o.out, "NODE GROUP", "PROVIDER", "DESIRED", "MACHINES", "READY", "MESSAGE")
	for _, g := range status.NodeGroups {
		t.Row(g.Name, string(g.Provider), strconv.Itoa(int(g.Desired)), strconv.Itoa(int(g.Machines)), strconv.Itoa(int(g.Ready)), orDash(g.Message))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if text := status.Host.Overcommitted(); text != "" {
		fmt.Fprintf(o.err, "\n%s\n", text)
	}
	return printTroubledMachines(o, status.Machines)
}

// printTroubledMachines shows the machines that are not as they should be, and why.
func printTroubledMachines(o *options, machines []cluster.MachineStatus) error {
	t := table.New(o.out, "MACHINE", "NODE", "PHASE", "MESSAGE")
	troubled := false
	for _, m := range machines {
		if m.Message != "" {
			t.Row(m.Name, orDash(m.NodeName), string(m.Phase), m.Message)
			troubled = true
		}
	}
	if !troubled {
		return nil
	}
	fmt.Fprintln(o.out)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(o.err, "What goes on in a machine is in its log: muster logs MACHINE")
	return nil
}
