// SPDX-License-Identifier: Apache-2.0

// Muster-webhook-proxy dials webhooks for a cluster's API server: the account's own on the host, all others in the VPC.
// It is a program of its own because each cluster runs one: little is linked into it, and its pages are counted once
// for each of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"muster.dev/muster/internal/plane/webhookproxy"
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
	config := webhookproxy.Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("muster-webhook-proxy", flag.ContinueOnError)
	flags.StringVar(&config.Socket, "socket", "", "unix socket to answer HTTP CONNECT on")
	flags.Func("own", "ports of the account's own on the host that may be dialled there, with commas between them", func(ports string) error {
		config.Own = strings.Split(ports, ",")
		return nil
	})
	flags.StringVar(&config.VPCSocket, "vpc-socket", "", "unix socket by which everything else is dialled in the cluster's VPC; empty for a cluster without one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return webhookproxy.Run(ctx, config)
}
