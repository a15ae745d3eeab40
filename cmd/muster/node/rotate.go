// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/join"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/platform/termsafe"
)

// nodeRotateCommand holds the flags of "muster node rotate".
type nodeRotateCommand struct {
	*terminal.Options
	enter  onMachine
	rotate func(context.Context, nodecerts.RotateConfig) ([]nodecerts.Rotated, error)

	dir, kubeconfig string
	client, server  bool
	timeout         time.Duration
	format          string
}

func newNodeRotateCommand(o *terminal.Options) *cobra.Command {
	return (&nodeRotateCommand{Options: o, enter: newOnMachine(o), rotate: nodecerts.Rotate}).command()
}

func (r *nodeRotateCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate [MACHINE]",
		Short: "Ask for new certificates of the kubelet now, on this node or on a local machine",
		Long: `Ask for new certificates of this node's kubelet now, with its present one: new keys, the same names, the same way in which the
kubelet asks. When they are issued and checked they become the current ones, and the kubelet is restarted to use them; pods go
on. Without --client or --server, both are replaced. A node that joined by its machine's role has only the one that it serves.

Nothing is changed before all are there, and a machine that loses its power meanwhile comes back with a kubelet that works.`,
		Example: `  muster node rotate
  muster node rotate --server
  muster node rotate 172.31.0.5 --client`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: kinds.CompleteNames(r.Options, kinds.NewDialers(), kinds.Machines(), 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return r.enter(cmd.Context(), args[0], r.arguments())
			}
			return r.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&r.client, "client", false, "the one that the kubelet shows to the API server")
	flags.BoolVar(&r.server, "server", false, "the one that the kubelet serves")
	flags.DurationVar(&r.timeout, "timeout", 5*time.Minute, "how long to wait until they are issued")
	flags.StringVar(&r.dir, "cert-dir", nodecerts.DefaultDir, "directory of the kubelet's certificates")
	flags.StringVar(&r.kubeconfig, "kubeconfig", "", "the kubelet's kubeconfig (default: where kubelets have it)")
	terminal.AddOutputFlag(cmd, &r.format)
	return cmd
}

// arguments are the same command for a machine.
func (r *nodeRotateCommand) arguments() []string {
	args := []string{"rotate", "--cert-dir", r.dir, "--timeout", r.timeout.String(), "-o", r.format}
	if r.kubeconfig != "" {
		args = append(args, "--kubeconfig", r.kubeconfig)
	}
	if r.client {
		args = append(args, "--client")
	}
	if r.server {
		args = append(args, "--server")
	}
	return args
}

func (r *nodeRotateCommand) run(ctx context.Context) error {
	if err := join.CheckTimeout(r.timeout); err != nil {
		return err
	}
	path := r.kubeconfig
	if path == "" {
		var err error
		if path, err = nodecerts.FindKubeconfig(); err != nil {
			return err
		}
	}
	kinds := nodecerts.Kinds()
	switch {
	case r.client && !r.server:
		kinds = []nodecerts.Kind{nodecerts.Client}
	case r.server && !r.client, !r.client && nodecerts.ByRole(path):
		kinds = []nodecerts.Kind{nodecerts.Serving}
	}
	rotated, err := r.rotate(ctx, nodecerts.RotateConfig{
		Dir: r.dir, Kubeconfig: path, Kinds: kinds, Timeout: r.timeout, Now: time.Now, Restart: nodecerts.RestartKubelet,
		Say: func(format string, args ...any) { fmt.Fprintln(r.Err, termsafe.Line(fmt.Sprintf(format, args...))) },
	})
	if err != nil {
		return err
	}
	if r.format != terminal.FormatTable {
		return terminal.PrintData(r.Out, r.format, rotated)
	}
	for _, one := range rotated {
		fmt.Fprintf(r.Out, "%s certificate %s: replaced, by request %s\n", one.Kind, one.Serial, one.Request)
	}
	return nil
}
