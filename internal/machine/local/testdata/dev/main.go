// SPDX-License-Identifier: Apache-2.0

// Dev drives the local provider by hand.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"muster.dev/muster/internal/machine"
	"muster.dev/muster/internal/machine/local"
	"muster.dev/muster/internal/machine/simulated"
	"muster.dev/muster/internal/node"
	"muster.dev/muster/internal/state"
	"muster.dev/muster/internal/vpc"
)

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "node" {
		if len(os.Args) > 2 && os.Args[2] == "boot" {
			check(local.Boot())
		}
		check(node.Run(ctx, node.DefaultConfig()))
		return
	}
	dir := must(state.Open(os.Getenv("MUSTER_STATE_DIR")))
	cidr := netip.MustParsePrefix("192.168.64.0/18")
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	network := must(vpc.New(vpc.Config{Dir: dir.VPC(), CIDR: cidr}))
	switch os.Args[1] {
	case "vpc":
		relay := must(vpc.NewRelay(vpc.RelayConfig{Network: network, PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), APIServer: os.Args[2], EgressSocket: dir.EgressSocket(), Log: log}))
		check(relay.Run(ctx))
		return
	case "vpc-delete":
		check(network.Delete())
		return
	case "route":
		check(network.SetRoute(vpc.Route{PodCIDR: netip.MustParsePrefix(os.Args[2]), Machine: netip.MustParseAddr(os.Args[3])}))
		fmt.Println(must(network.Routes()))
		return
	}
	if os.Args[1] == "simulate" {
		store := must(machine.NewStore(machine.StoreConfig{Dir: dir.Machines(), VPC: cidr, Domain: "muster.internal"}))
		p := must(simulated.New(simulated.Config{Store: store}))
		var n int
		fmt.Sscan(os.Args[2], &n)
		for i := range n {
			must(p.Launch(ctx, machine.LaunchRequest{ID: fmt.Sprintf("i-5%016x", i), UserData: must(os.ReadFile(os.Args[3]))}))
		}
		return
	}
	if os.Args[1] == "simulator" {
		check(must(simulated.NewSimulator(simulated.SimulatorConfig{State: dir, APIServer: os.Args[2], CA: must(os.ReadFile(os.Args[3])), Log: log})).Run(ctx))
		return
	}
	exe := os.Getenv("MUSTER_BIN")
	p := must(local.New(local.Config{State: dir, BinDir: exe, VPC: cidr, Domain: "muster.internal", Log: log}))
	start := time.Now()
	switch os.Args[1] {
	case "launch":
		fmt.Println(must(p.Launch(ctx, machine.LaunchRequest{ID: os.Args[2], UserData: must(os.ReadFile(os.Args[3]))})))
	case "list":
		fmt.Println(must(p.List(ctx)))
	case "stop":
		check(p.Stop(ctx, os.Args[2], 2*time.Second))
	case "terminate":
		check(p.Terminate(ctx, os.Args[2]))
	}
	fmt.Fprintln(os.Stderr, time.Since(start))
}
