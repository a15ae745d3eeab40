// SPDX-License-Identifier: Apache-2.0

// Muster-token-signer signs a cluster's service account tokens for its API server, on a unix socket. It is a program of
// its own because each cluster runs one: little is linked into it, and its pages are counted once for each of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"muster.dev/muster/internal/plane/tokensigner"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	config := tokensigner.Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("muster-token-signer", flag.ContinueOnError)
	flags.StringVar(&config.Issuer, "issuer", "", "URL of the cluster's issuer, the claim iss of tokens")
	flags.StringVar(&config.Keys, "keys", "", "directory with the keys that sign, which no other program reads")
	flags.StringVar(&config.LegacyKey, "legacy-key", "", "file with the key of tokens in Secrets, which the API server is to trust")
	flags.StringVar(&config.Socket, "socket", "", "unix socket to serve ExternalJWTSigner on")
	flags.StringVar(&config.Address, "address", "", "IP address and port on which the account is answered, by TLS")
	flags.StringVar(&config.Credential, "credential", "", "file with the certificate and the key for that")
	flags.StringVar(&config.ClientCA, "client-ca", "", "file with the authority of the account's client certificate")
	flags.StringVar(&config.Client, "client", "", "common name of the only client that is answered")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return tokensigner.Run(ctx, config)
}
