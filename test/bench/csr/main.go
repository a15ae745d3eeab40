// SPDX-License-Identifier: Apache-2.0

// Csr measures how fast certificate signing requests are approved and signed, and what that costs: by muster's
// certificate controller, by kube-controller-manager with its default client limits and with raised ones, and by the
// floor, which is the least that approving and signing can cost. All of them run in one go on the same machine, each on
// a fresh upstream control plane of the programs in bin/, in rounds whose order is reversed every other time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/test/plane"
)

// options are the flags.
type options struct {
	rounds, slowRounds  int
	systems             []string
	bursts, slowBursts  []int
	rate, slowRate      float64
	steady              time.Duration
	mixed, single       int
	concurrency, raised int
	limit               time.Duration
	output, bin, muster string
	flow                plane.Flow
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "floor" {
		err = floorMain(ctx, os.Args[2:])
	} else {
		err = benchMain(ctx, os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func benchMain(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if _, err := os.Stat(release.Default().Program(o.bin, "kube-apiserver")); err != nil {
		return fmt.Errorf("the benchmark runs the programs in bin/: run `make build` first (%w)", err)
	}
	b := bench{options: o}
	if err := b.run(ctx); err != nil {
		return err
	}
	if o.output == "json" {
		return b.report.writeJSON(os.Stdout)
	}
	return b.report.writeTable(os.Stdout)
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("csr", flag.ContinueOnError)
	var systems, bursts, slowBursts, flow string
	flags.IntVar(&o.rounds, "rounds", 3, "rounds; medians are printed")
	flags.IntVar(&o.slowRounds, "slow-rounds", 1, "rounds of kube-controller-manager with default limits, which takes 100 s for 1,000 requests")
	flags.StringVar(&systems, "systems", strings.Join(systemNames(), ","), "what to measure")
	flags.StringVar(&bursts, "bursts", "100,1000,5000", "requests that arrive at once")
	flags.StringVar(&slowBursts, "slow-bursts", "100,1000", "the same for kube-controller-manager with default limits")
	flags.Float64Var(&o.rate, "rate", 50, "requests per second of the steady load; 0 leaves it out")
	flags.Float64Var(&o.slowRate, "slow-rate", 8, "the same for kube-controller-manager with default limits, which does 10")
	flags.DurationVar(&o.steady, "steady", 10*time.Second, "how long the steady load goes on")
	flags.IntVar(&o.mixed, "mixed", 1000, "size of a burst of which every other request is a node's, for a serving certificate; 0 leaves it out")
	flags.IntVar(&o.single, "single", 1000, "size of a burst of one requester; 0 leaves it out")
	flags.IntVar(&o.concurrency, "concurrency", 64, "requests that are created at the same time in a burst")
	flags.IntVar(&o.raised, "raised-qps", 2000, "client limit of kube-controller-manager when raised; its burst is twice that")
	flags.DurationVar(&o.limit, "limit", 15*time.Minute, "when the benchmark gives up")
	flags.StringVar(&o.output, "o", "table", "table or json")
	flags.StringVar(&o.bin, "bin", "bin", "directory of the programs")
	flags.StringVar(&o.muster, "muster", "", "certificate controller that is measured; muster-certificate-controller in -bin if empty")
	flags.StringVar(&flow, "flow", "default", "priority and fairness: default, or bootstrap for a level of their own for bootstrap tokens")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return o, err
	}
	if o.muster == "" {
		o.muster = filepath.Join(o.bin, "muster-certificate-controller")
	}
	if o.bursts, err = numbers(bursts); err != nil {
		return o, fmt.Errorf("-bursts: %w", err)
	}
	if o.slowBursts, err = numbers(slowBursts); err != nil {
		return o, fmt.Errorf("-slow-bursts: %w", err)
	}
	for name := range strings.SplitSeq(systems, ",") {
		if _, ok := systemOf(name); !ok {
			return o, fmt.Errorf("-systems: there is no %q (%s)", name, strings.Join(systemNames(), ", "))
		}
		o.systems = append(o.systems, name)
	}
	switch {
	case flow == "bootstrap":
		o.flow = plane.FlowBootstrap
	case flow != "default":
		return o, fmt.Errorf("-flow: there is no %q (default, bootstrap)", flow)
	case o.output != "table" && o.output != "json":
		return o, fmt.Errorf("-o: there is no %q (table, json)", o.output)
	case o.rounds < 1, o.slowRounds < 0, o.concurrency < 1, o.rate < 0, o.slowRate < 0, o.mixed < 0, o.single < 0:
		return o, errors.New("numbers must not be negative, and rounds and concurrency at least 1")
	}
	return o, nil
}

func numbers(list string) (n []int, err error) {
	if list == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		one, err := strconv.Atoi(text)
		if err != nil || one < 1 {
			return nil, fmt.Errorf("%q is no number of requests", text)
		}
		n = append(n, one)
	}
	return n, nil
}
