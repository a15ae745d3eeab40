// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/explain"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/platform/termsafe"
)

// exitUnasked is the exit code of a host that is no node: nothing can be explained there. The other codes are those of
// muster explain.
const exitUnasked = 4

// nodeExplainCommand holds the flags of "muster node explain".
type nodeExplainCommand struct {
	*terminal.Options
	enter  onMachine
	look   func(context.Context) (diagnosis.Report, error)
	output string
}

func newNodeExplainCommand(o *terminal.Options) *cobra.Command {
	return (&nodeExplainCommand{Options: o, enter: newOnMachine(o), look: explain.Node}).command()
}

func (c *nodeExplainCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [MACHINE]",
		Short: "Show why this host is not a node, by what the host itself has",
		Long: `Show why this host is not a node, or is not as it should be: the cause by its identifier, the evidence, the fix, and what could not be
looked at. It works on any node: EKS's (AL2023 and AL2), kubeadm's, hosts that joined Muster and its machines; with the name of a local
machine, there. All causes are in docs/causes.md.

The command reads: files of the kubelet and its certificates, systemd's units, the last minute of the kubelet's log. It asks the kubelet,
the container runtime, the metadata service of the instance, and the API server, without a credential. It needs root for most of that,
and says what it could not see without.

Exit codes: 0 nothing is wrong, 1 a cause was found, 2 the command line is wrong, 3 something is wrong and the cause is not known,
4 this host is no node.`,
		Example: `  sudo muster node explain
  sudo muster node explain -o json | jq -r '.causes[].cause'
  muster node explain i-0123456789abcdef0`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: kinds.CompleteNames(c.Options, kinds.NewDialers(), kinds.Machines(), 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := terminal.CheckOutput(c.output, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML); err != nil {
				return err
			}
			if len(args) == 1 {
				return c.enter(cmd.Context(), args[0], []string{"explain", "-o", c.output})
			}
			return c.run(cmd.Context())
		},
	}
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatTable, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

func (c *nodeExplainCommand) run(ctx context.Context) error {
	report, err := c.look(ctx)
	if err != nil {
		_, _ = fmt.Fprintf(c.Err, "Error: nothing can be explained: %s\n", termsafe.Line(err.Error()))
		return terminal.ExitStatus(exitUnasked)
	}
	if c.output == terminal.FormatTable {
		err = explain.Tell(c.Out, report)
	} else {
		err = terminal.PrintData(c.Out, c.output, report)
	}
	if err != nil {
		return err
	}
	return explain.Exit(report)
}
