// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/auth"
	"muster.dev/muster/cmd/muster/authenticator"
	"muster.dev/muster/cmd/muster/certs"
	"muster.dev/muster/cmd/muster/console"
	"muster.dev/muster/cmd/muster/csr"
	"muster.dev/muster/cmd/muster/explain"
	"muster.dev/muster/cmd/muster/image"
	"muster.dev/muster/cmd/muster/join"
	"muster.dev/muster/cmd/muster/mcp"
	"muster.dev/muster/cmd/muster/node"
	"muster.dev/muster/cmd/muster/objects"
	"muster.dev/muster/cmd/muster/podwebhook"
	"muster.dev/muster/cmd/muster/service"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/token"
	"muster.dev/muster/cmd/muster/tools"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/version"
)

const groupMain, groupObjects, groupParts = "main", "objects", "parts"

func newRootCommand(s terminal.Streams) *cobra.Command {
	o := &terminal.Options{Streams: s}
	root := &cobra.Command{
		Use:   "muster",
		Short: "Kubernetes clusters that machines join by themselves, and only those that should",
		Long: `Muster runs real Kubernetes clusters on this machine. Its nodes boot, prove who they are,
get their certificates and turn Ready with nobody's help.`,
		Example: `  # A cluster with three nodes
  muster up

  # Five nodes, by hand or by kubectl
  muster scale nodegroup default 5
  kubectl --context muster-management -n muster scale nodegroup default --replicas 5

  # Another cluster beside it, and its end
  muster create cluster blue --nodes 2 --wait
  muster delete cluster blue --cascade

  # Stop everything; start it again; remove everything it ever made
  muster down
  muster up
  muster down --delete`,
		Version:           version.Version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              terminal.UsageArgs(cobra.NoArgs),
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return terminal.UsageError{Err: fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.PersistentFlags().StringVar(&o.StateDir, "state-dir", statedir.Default(), "directory of everything muster keeps; $"+statedir.Env+" sets it too")
	root.PersistentFlags().StringVar(&o.Cluster, "cluster", "", "name of the cluster; needed where there are several")
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Commands:"},
		&cobra.Group{ID: groupObjects, Title: "Clusters, node groups and machines:"},
		&cobra.Group{ID: groupParts, Title: "Parts, each of which also runs alone:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			terminal.CheckUsage(c)
			root.AddCommand(c)
		}
	}
	add(groupMain, service.NewUpCommand(o), service.NewDownCommand(o), service.NewStatusCommand(o), explain.NewCommand(o), console.NewCommand(o), mcp.NewCommand(o), tools.NewKubeconfigCommand(o), tools.NewEnvCommand(o), tools.NewOIDCCommand(o), certs.NewCommand(o), csr.NewCommand(o), token.NewCommand(o), auth.NewCommand(o), image.NewCommand(o), objects.NewLogsCommand(o), service.NewVersionCommand(o))
	add(groupMain, service.NewServiceCommand(o))
	add(groupMain, join.NewCommand(o), join.NewLeaveCommand(o))
	add(groupObjects, objects.NewGetCommand(o), objects.NewCreateCommand(o), objects.NewScaleCommand(o), objects.NewUpgradeCommand(o), objects.NewRolloutCommand(o), objects.NewZonalShiftCommand(o), objects.NewDeleteCommand(o), objects.NewDefragmentCommand(o), objects.NewDrillCommand(o), objects.NewExecCommand(o), objects.NewSSHCommand(o))
	add(groupParts, service.NewServeCommand(o), service.NewCertificateControllerCommand(), authenticator.NewCommand(), podwebhook.NewCommand(), node.NewCommand(o))
	for _, hidden := range []*cobra.Command{service.NewGuardCommand(o), service.NewVPCCommand(), service.NewBalancerCommand(), service.NewSimulatorCommand(), service.NewRegistryCommand()} {
		hidden.Hidden = true
		root.AddCommand(hidden)
	}
	return root
}
