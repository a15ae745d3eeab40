// SPDX-License-Identifier: Apache-2.0

// Bench measures what a user of muster waits for and pays: the time from nothing to Ready nodes, the memory of every
// process, simulated machines joined per second, and the management plane beside the API server it could have been.
// It runs the programs in bin/ and prints tables; docs/benchmarks.md keeps figures with their date and machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 3, "rounds of each measurement; medians are printed")
	simulated := flag.Int("simulated", 500, "simulated nodes of the measurements simulated, podstatus, memorylimit and joins")
	only := flag.String("only", "up,simulated,join,launch,clusters,management", "measurements to take; awsapi, balancer, front, identities, image, isolation, joins, logins, logs, memory, memorylimit, pending, podnetwork, pods, podstatus, scale, speed, volume and warm are others")
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
	measurements := map[string]func() error{
		"awsapi":      func() error { return benchAWS(ctx, bin, instances) },
		"balancer":    func() error { return benchBalancer(ctx, bin, rounds) },
		"clusters":    func() error { return benchClusters(ctx, bin) },
		"front":       func() error { return benchFront(ctx, bin) },
		"identities":  func() error { return benchIdentities(ctx, bin) },
		"image":       func() error { return benchImageLoad(ctx, bin, rounds) },
		"isolation":   func() error { return benchIsolation(ctx, bin, rounds) },
		"join":        func() error { return benchJoin(ctx, bin, rounds) },
		"joins":       func() error { return benchJoins(ctx, bin, simulated) },
		"launch":      func() error { return benchLaunch(ctx, bin, rounds) },
		"logins":      func() error { return benchLogins(ctx, bin) },
		"logs":        func() error { return benchLogs(ctx, bin, rounds) },
		"management":  func() error { return benchManagement(ctx, bin, rounds) },
		"memory":      func() error { return benchMemory(ctx, bin) },
		"memorylimit": func() error { return benchMemoryLimit(ctx, bin, simulated) },
		"pending":     func() error { return benchPending(ctx, bin, rounds) },
		"podnetwork":  func() error { return benchPodNetwork(ctx, bin, rounds) },
		"pods":        func() error { return benchPods(ctx, bin) },
		"podstatus":   func() error { return benchSimulatedPods(ctx, bin, simulated) },
		"scale":       func() error { return benchScale(ctx, bin, rounds) },
		"simulated":   func() error { return benchSimulated(ctx, bin, simulated) },
		"speed":       func() error { return benchSpeed(ctx, bin) },
		"up":          func() error { return benchUp(ctx, bin, rounds) },
		"volume":      func() error { return benchVolume(ctx, bin, rounds) },
		"warm":        func() error { return benchWarm(ctx, bin, rounds) },
	}
	for _, name := range only {
		measure, ok := measurements[name]
		if !ok {
			return fmt.Errorf("--only: there is no measurement %q (%s)", name, strings.Join(slices.Sorted(maps.Keys(measurements)), ", "))
		}
		if err := measure(); err != nil {
			return err
		}
		fmt.Println()
	}
	return nil
}

func newTable() *tabwriter.Writer {
	return tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', tabwriter.AlignRight)
}
