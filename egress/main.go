// SPDX-License-Identifier: Apache-2.0

// Command muster-egress is the way out of one VPC: packets that security groups let through come by a link in the VPC's
// namespace, end in a network stack of this process's own, and go on as ordinary connections, datagrams and echo
// requests of the host. Nothing is forwarded or masqueraded, and no rule, route, link or setting of the host is
// touched; to the host it is a program with sockets.
//
// It trusts the VPC's namespace to have dropped packets with a source that is not their sender's (rp_filter), and the
// description of the VPC on disk, which says what may leave (internal/network/egresspolicy) and is read again once a
// second. It does not trust the bytes of packets. It refuses, before a socket is connected, every address that the
// policy does not open, every one that is the host's own by the host's routes, and what is more than a machine's share.
// Once all is open it gives up its capabilities for good.
//
// What happens if:
//
//	it is killed                            the link goes with it, and the way out; the supervisor starts it again, and connections are reset
//	the description cannot be read          what may leave stays as it was; at the start it ends with an error
//	a range is taken from what may leave    connections to it are reset within a second
//	a machine opens connections endlessly   it gets its share; others have theirs
//	a machine dies                          its connections end after two minutes of silence, and its flows of datagrams after one
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/statedir"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, os.Args[1:], log)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// serve opens everything, gives up its rights and runs.
func serve(ctx context.Context, args []string, log *slog.Logger) error {
	flags := flag.NewFlagSet("muster-egress", flag.ContinueOnError)
	stateDir := flags.String("state-dir", statedir.Default(), "directory of everything muster keeps")
	id := flags.String("id", "", "id of the VPC, which is described below the state directory")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := statedir.Open(*stateDir)
	if err != nil {
		return err
	}
	network, err := vpc.Open(dir.VPCs(), *id)
	if err != nil {
		return err
	}
	way, err := network.OpenWayOut()
	if err != nil {
		return err
	}
	defer func() { _ = way.Close() }()
	routes, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("opening netlink socket for the host's routes: %w", err)
	}
	defer routes.Close()
	ready, err := socketdir.ListenPrivate(ctx, dir.WayOutSocket(*id))
	if err != nil {
		return err
	}
	allowed, err := raiseFiles()
	if err != nil {
		return err
	}
	if err := giveUpRights(); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	server := &http.Server{Handler: answers(registry), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 4 << 10}
	go func() { _ = server.Serve(ready) }()
	defer func() { _ = server.Close() }()
	log.Info("the way out is open", "vpc", *id)
	return run(ctx, config{
		link: &tunLink{file: way.File(), mtu: way.MTU()}, gate: &gate{read: way.Settings, kind: routeKind(routes), log: log},
		machine: way.Machine, limits: defaultLimits().within(allowed), log: log, metrics: registry,
	})
}

// answers serves /readyz and /metrics.
func answers(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}
