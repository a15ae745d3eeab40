// SPDX-License-Identifier: Apache-2.0

package service

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/cluster/webhookproxy"
)

// NewWebhookProxyCommand returns the hidden command that dials webhooks for a cluster's API server.
func NewWebhookProxyCommand() *cobra.Command {
	var config webhookproxy.Config
	command := &cobra.Command{
		Use:   "webhook-proxy",
		Short: "Dial webhooks for a cluster's API server: the account's own on the host, all others in the VPC",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
			return webhookproxy.Run(cmd.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Socket, "socket", "", "unix socket to answer HTTP CONNECT on")
	flags.StringSliceVar(&config.Own, "own", nil, "ports of the account's own on the host that may be dialled there")
	flags.StringVar(&config.VPCSocket, "vpc-socket", "", "unix socket by which everything else is dialled in the cluster's VPC; empty for a cluster without one")
	return command
}
