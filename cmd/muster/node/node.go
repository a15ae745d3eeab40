// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/thishost"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/node/agent"
	"muster.dev/muster/internal/node/configsource"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/systemd"
)

// NewCommand returns "muster node", the node's own side. Without a subcommand it is the agent, process number one of a
// machine.
func NewCommand(o *terminal.Options) *cobra.Command {
	command := &cobra.Command{
		Use:   "node",
		Short: "Run the steps by which a machine becomes a node and stays one",
		Long: `Run the steps by which a machine becomes a node and stays one. A local machine does all of them by itself: this command, without a
subcommand, is its process number one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Getpid() != 1 {
				return cmd.Help()
			}
			return agent.Run(cmd.Context(), agent.DefaultConfig())
		},
	}
	command.AddCommand(
		&cobra.Command{
			Use:    "boot",
			Hidden: true,
			Short:  "Build a machine's root and become its agent",
			Args:   cobra.NoArgs,
			RunE:   func(*cobra.Command, []string) error { return local.Boot() },
		},
		newNodeInitCommand(o),
		newNodeConfigCommand(),
		newNodeCertsCommand(o),
		newNodeExplainCommand(o),
		newNodeRotateCommand(o),
		newNodeWatchCommand(o),
	)
	return command
}

func newNodeInitCommand(o *terminal.Options) *cobra.Command {
	var sources, skip []string
	command := &cobra.Command{
		Use:   "init",
		Short: "Make this machine a node by its NodeConfig, as at boot",
		Long: `Make this machine a node, as it does by itself when it boots: gather the NodeConfig (config), write the files of
containerd, kubelet and kube-proxy, and start them (run).

The identity of the machine comes from the instance metadata service alone. Scripts in user data are not run here.
On a machine whose process number one is muster, documents from elsewhere than its user data are left in ` + agent.DropInDir + `
for the agent, which goes on from there.`,
		Example: `  muster node init
  muster node init --config-source imds://user-data --config-source file:///etc/eks/nodeadm.d
  muster node init --config-source file:///etc/eks/node.yaml --skip run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, source := range sources {
				if err := configsource.Check(source); err != nil {
					return terminal.UsageError{Err: fmt.Errorf("--config-source: %w", err)}
				}
			}
			for _, phase := range skip {
				if !slices.Contains([]string{agent.PhaseConfig, agent.PhaseRun}, phase) {
					return terminal.UsageError{Err: fmt.Errorf("unknown phase %q in --skip; there are: %s, %s", phase, agent.PhaseConfig, agent.PhaseRun)}
				}
			}
			if os.Geteuid() != 0 {
				return errors.New("making this machine a node needs root: run it with sudo")
			}
			if len(sources) == 0 {
				sources = agent.Sources()
			}
			programs, err := ownDirectory()
			if err != nil {
				return err
			}
			return agent.Init(cmd.Context(), agent.InitConfig{
				Sources: sources, Skip: skip, Metadata: imds.DefaultEndpoint, DropInDir: agent.DropInDir, Stdin: o.In,
				Facts: agent.ReadFacts, Check: thishost.KubeletCheck(programs),
				Write: agent.WriteFiles, Restart: restartNode, Forget: agent.ForgetBootstrap,
				Say: func(what string) { fmt.Fprintln(o.Err, what) },
			})
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&sources, "config-source", "c", nil,
		"where the NodeConfig is, in order; the user data and then "+agent.DropInDir+" by default: "+strings.Join([]string{configsource.UserData, "file://PATH of a file or directory", "- for standard input"}, ", "))
	flags.StringSliceVar(&skip, "skip", nil, "phases to leave out: config, run")
	return command
}

// restartNode restarts the node's programs by the supervisor that runs them here: systemd, or the machine's agent.
func restartNode(ctx context.Context, layout render.Layout) error {
	if !layout.Systemd {
		return nodecerts.RestartKubelet(ctx)
	}
	control, err := systemd.New(systemd.Config{})
	if err != nil {
		return err
	}
	units := []string{"containerd.service", "kubelet.service", "kube-proxy.service"}
	if err := control.Do(ctx, systemd.Reload); err != nil {
		return err
	}
	if err := control.Do(ctx, systemd.Enable, units...); err != nil {
		return err
	}
	return control.Do(ctx, systemd.Restart, units...)
}
