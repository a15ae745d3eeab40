// SPDX-License-Identifier: Apache-2.0

// Bench measures what a user of muster waits for and pays: the time from nothing to Ready nodes, the memory of every
// process, simulated machines joined per second, and the management plane beside the API server it could have been.
// It runs the programs in bin/ and prints tables; docs/benchmarks.md keeps figures with their date and machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 3, "rounds of each measurement; medians are printed")
	simulated := flag.Int("simulated", 500, "simulated nodes of the measurements simulated, memorylimit and joins")
	only := flag.String("only", "up,simulated,join,launch,clusters,management", "measurements to take; awsapi, balancer, identities, image, isolation, joins, logins, memory, memorylimit, podnetwork, pods, speed and volume are others")
	instances := flag.Int("instances", 1000, "instances of the measurement awsapi")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *rounds, *simulated, *instances, strings.Split(*only, ",")); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds, simulated, instances int, only []string) error {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(bin, "muster")); err != nil {
		return fmt.Errorf("the benchmark runs the programs in bin/: run `make build` first (%w)", err)
	}
	fmt.Printf("%s, %d CPUs, %s\n\n", time.Now().Format(time.DateOnly), runtime.NumCPU(), runtime.Version())
	for _, name := range only {
		switch name {
		case "up":
			err = benchUp(ctx, bin, rounds)
		case "simulated":
			err = benchSimulated(ctx, bin, simulated)
		case "join":
			err = benchJoin(ctx, bin, rounds)
		case "memory":
			err = benchMemory(ctx, bin)
		case "memorylimit":
			err = benchMemoryLimit(ctx, bin, simulated)
		case "launch":
			err = benchLaunch(ctx, bin, rounds)
		case "clusters":
			err = benchClusters(ctx, bin)
		case "management":
			err = benchManagement(ctx, bin, rounds)
		case "balancer":
			err = benchBalancer(ctx, bin, rounds)
		case "logins":
			err = benchLogins(ctx, bin)
		case "identities":
			err = benchIdentities(ctx, bin)
		case "volume":
			err = benchVolume(ctx, bin, rounds)
		case "image":
			err = benchImageLoad(ctx, bin, rounds)
		case "pods":
			err = benchPods(ctx, bin)
		case "isolation":
			err = benchIsolation(ctx, bin, rounds)
		case "podnetwork":
			err = benchPodNetwork(ctx, bin, rounds)
		case "speed":
			err = benchSpeed(ctx, bin)
		case "joins":
			err = benchJoins(ctx, bin, simulated)
		case "awsapi":
			err = benchAWS(ctx, bin, instances)
		default:
			err = fmt.Errorf("--only: there is no measurement %q (up, simulated, join, launch, clusters, management, awsapi, balancer, identities, image, isolation, joins, logins, memory, memorylimit, podnetwork, pods, speed, volume)", name)
		}
		if err != nil {
			return err
		}
		fmt.Println()
	}
	return nil
}

func newTable() *tabwriter.Writer {
	return tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', tabwriter.AlignRight)
}
