// SPDX-License-Identifier: Apache-2.0

// Muster-plane-front passes connections to a cluster's API servers, at the published address of its plane. It is a
// program of its own because each cluster runs one: little is linked into it, and its pages are counted once for each of
// them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"muster.dev/muster/internal/plane/planefront"
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
	config := planefront.Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("muster-plane-front", flag.ContinueOnError)
	flags.TextVar(&config.Listen, "listen", netip.AddrPort{}, "published address of the plane: IP address and port on loopback")
	flags.StringVar(&config.Servers, "servers", "", "file of the API servers that connections are passed to; it is followed")
	flags.StringVar(&config.Authority, "authority", "", "file with the authority of the API servers' certificates")
	flags.StringVar(&config.Socket, "socket", "", "unix socket to answer /readyz and /metrics on; the next front takes the address over beside it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	front, err := planefront.New(config)
	if err != nil {
		return err
	}
	return front.Run(ctx)
}
