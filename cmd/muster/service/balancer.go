// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/network/balancer"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/statedir"
)

// NewBalancerCommand returns the hidden command that serves the load balancers of a VPC.
func NewBalancerCommand() *cobra.Command {
	var stateDir, id string
	command := &cobra.Command{
		Use:   "balancer",
		Short: "Serve the load balancers of a VPC: pass connections from the host and the VPC to pods and nodes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := statedir.Open(stateDir)
			if err != nil {
				return err
			}
			if err := vpc.ValidateID(id); err != nil {
				return terminal.UsageError{Err: fmt.Errorf("--id: %w", err)}
			}
			network, err := vpc.Open(dir.VPCs(), id)
			if err != nil {
				return err
			}
			machines, err := local.NewDirectory(dir, id)
			if err != nil {
				return err
			}
			server, err := balancer.New(balancer.Config{
				Network: network, Machines: machines, Dir: dir.VPC(id), Socket: dir.BalancerSocket(id),
				Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
			})
			if err != nil {
				return err
			}
			return server.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&stateDir, "state-dir", statedir.Default(), "directory of everything muster keeps")
	flags.StringVar(&id, "id", "", "id of the VPC, which is described below the state directory")
	return command
}
