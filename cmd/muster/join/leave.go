// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/hostjoin"
)

type leaveCommand struct {
	*terminal.Options
	request    hostjoin.LeaveRequest
	kubeconfig string
	context    string
	timeout    time.Duration
	format     string
}

// NewLeaveCommand returns "muster leave".
func NewLeaveCommand(o *terminal.Options) *cobra.Command {
	l := &leaveCommand{Options: o}
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Undo muster join: drain, stop, and remove what it made and nothing else",
		Long: `Undo muster join: drain the node, stop what makes this host one, remove its pods, certificates and keys, and every file that the join
made. What was on the host before stays. Run again after an interruption it goes on; on a host that has not joined it does nothing.

A node may drain itself but not delete itself: that needs the kubeconfig of an administrator. Without one, the command that the
administrator has to run is printed. A node whose certificate has expired or is lost cannot drain itself either.`,
		Example: `  muster leave --kubeconfig admin.conf

  # The cluster is gone
  muster leave --force`,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&l.request.Force, "force", false, "go on though the cluster does not answer or pods do not go")
	flags.BoolVar(&l.request.KeepNode, "keep-node", false, "leave the Node in the cluster, for a host that comes back")
	flags.DurationVar(&l.request.DrainTimeout, "drain-timeout", 2*time.Minute, "how long pods may take to go")
	flags.StringVar(&l.kubeconfig, "kubeconfig", "", "kubeconfig of somebody who may drain and delete the Node, and delete the bootstrap token")
	flags.StringVar(&l.context, "context", "", "context of that kubeconfig")
	flags.DurationVar(&l.timeout, "timeout", 5*time.Minute, "how long all of it may take")
	terminal.AddFormatFlag(cmd, &l.format, terminal.FormatTable, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

func (l *leaveCommand) run(ctx context.Context) error {
	if err := terminal.CheckOutput(l.format, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML); err != nil {
		return err
	}
	if err := CheckTimeout(l.timeout); err != nil {
		return err
	}
	if l.kubeconfig != "" {
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: l.kubeconfig}
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: l.context}).ClientConfig()
		if err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
		if l.request.Admin, err = hostjoin.Connect(config); err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	h, err := NewHost(l.Options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	report, err := h.Leave(ctx, l.request)
	if err != nil {
		return err
	}
	if l.format != terminal.FormatTable {
		return terminal.PrintData(l.Out, l.format, report)
	}
	return nil
}
