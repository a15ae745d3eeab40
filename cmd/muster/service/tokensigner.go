// SPDX-License-Identifier: Apache-2.0

package service

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/cluster/tokensigner"
)

// NewTokenSignerCommand returns the hidden command that signs a cluster's service account tokens.
func NewTokenSignerCommand() *cobra.Command {
	var config tokensigner.Config
	command := &cobra.Command{
		Use:   "token-signer",
		Short: "Sign a cluster's service account tokens for its API server, on a unix socket",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
			return tokensigner.Run(cmd.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Issuer, "issuer", "", "URL of the cluster's issuer, the claim iss of tokens")
	flags.StringVar(&config.Keys, "keys", "", "file with the keys that sign")
	flags.StringVar(&config.LegacyKey, "legacy-key", "", "file with the key of tokens in Secrets, which the API server is to trust")
	flags.StringVar(&config.Socket, "socket", "", "unix socket to serve ExternalJWTSigner on")
	return command
}
