// SPDX-License-Identifier: Apache-2.0

// Muster-webhook-proxy dials webhooks for a cluster's API server: the account's own on the host, all others in the VPC.
// It is a program of its own because each cluster runs one: little is linked into it, and its pages are counted once
// for each of them. With the argument sandbox it is the other end of such a proxy: it runs a program in a network of its
// own, from which ports are dialled by the proxy.
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
	"strings"
	"syscall"

	"muster.dev/muster/internal/plane/netsandbox"
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
	if len(args) > 0 && args[0] == "sandbox" {
		return sandbox(ctx, args[1:])
	}
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

// sandbox runs a program in the network namespace of this process.
func sandbox(ctx context.Context, args []string) error {
	config := netsandbox.Config{Environment: os.Environ(), Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("muster-webhook-proxy sandbox", flag.ContinueOnError)
	flags.StringVar(&config.Await, "await", "", "file that is to be readable before the program is started")
	flags.TextVar(&config.Probe, "probe", netip.AddrPort{}, "address and port of the program that says how it is")
	flags.StringVar(&config.ProbeSocket, "probe-socket", "", "unix socket that leads to -probe")
	flags.StringVar(&config.Program, "program", "", "path of the program")
	flags.StringVar(&config.Proxy, "proxy", "", "unix socket of the proxy that dials on the host")
	flags.Func("reach", "addresses and ports of the host that the proxy dials, with commas between them", func(ports string) error {
		for text := range strings.SplitSeq(ports, ",") {
			port, err := netip.ParseAddrPort(text)
			if err != nil {
				return err
			}
			config.Reach = append(config.Reach, port)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	return netsandbox.Run(ctx, config)
}
