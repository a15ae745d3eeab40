// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"muster.dev/muster/internal/machine/local"
	"muster.dev/muster/internal/node"
)

// newNodeCommand is what runs on a machine: "boot" first, which becomes the agent itself.
func newNodeCommand() *cobra.Command {
	agent := &cobra.Command{
		Use:   "node",
		Short: "Run a machine: its process number one",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return node.Run(cmd.Context(), node.DefaultConfig()) },
	}
	agent.AddCommand(&cobra.Command{
		Use:   "boot",
		Short: "Build a machine's root and become its agent",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return local.Boot() },
	})
	return agent
}
