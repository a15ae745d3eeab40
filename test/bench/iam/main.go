// SPDX-License-Identifier: Apache-2.0

// Iam measures how fast tokens of AWS IAM are verified, and what that costs: by aws-iam-authenticator's own verifier,
// as it is shipped and with a pool of connections that fits, and by muster's, against an STS in another process and
// with its own identity service's keys. All of it runs in one go on the same machine, each measurement in a process of
// its own, in rounds whose order is reversed every other time. All traffic is on loopback.
//
// It is a module of its own, so that aws-iam-authenticator is none of muster's dependencies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"muster.dev/muster/internal/platform/release"
)

// options are the flags.
type options struct {
	rounds      int
	parts       []string
	systems     []string // empty is all
	every       time.Duration
	flood       int
	rate        float64
	steady      time.Duration
	limit       time.Duration
	output      string
	bin, muster string
	profile     string
}

// The parts that can be measured.
const (
	partVerify  = "verify"
	partRefused = "refused"
	partFlood   = "flood"
	partReview  = "review"
)

func partNames() []string { return []string{partVerify, partRefused, partFlood, partReview} }

// commands are what this program runs itself as.
func commands() map[string]func(context.Context, []string) error {
	return map[string]func(context.Context, []string) error{
		"sts": stsMain, "null": nullMain, "keys": keysMain, "measure": measureMain, "flood": floodMain, "upstream": upstreamMain,
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run, args := benchMain, os.Args[1:]
	if len(args) > 0 {
		if command, ok := commands()[args[0]]; ok {
			run, args = command, args[1:]
		}
	}
	if err := run(ctx, args); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func benchMain(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, errors.New("the benchmark takes longer than -limit allows"))
	defer cancel()
	b := bench{options: o}
	if err := b.run(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		return err
	}
	if o.output == "json" {
		return b.report.writeJSON(os.Stdout)
	}
	return b.report.writeTable(os.Stdout)
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("iam", flag.ContinueOnError)
	var only, systems string
	flags.IntVar(&o.rounds, "rounds", 3, "rounds; medians are printed")
	flags.StringVar(&only, "only", strings.Join(partNames(), ","), "what to measure")
	flags.StringVar(&systems, "systems", "", "which systems to measure; all if empty")
	flags.DurationVar(&o.every, "each", time.Second, "how long verifying goes on for one figure")
	flags.IntVar(&o.flood, "tokens", 1_000_000, "bad tokens of a flood, each another")
	flags.Float64Var(&o.rate, "rate", 1000, "TokenReviews per second through the API server")
	flags.DurationVar(&o.steady, "steady", 5*time.Second, "how long those go on")
	flags.DurationVar(&o.limit, "limit", 20*time.Minute, "when the benchmark gives up")
	flags.StringVar(&o.output, "o", "table", "table or json")
	flags.StringVar(&o.bin, "bin", "../../../bin", "directory of the programs")
	flags.StringVar(&o.muster, "muster", "", "muster that is measured through the API server; muster in -bin if empty")
	flags.StringVar(&o.profile, "profile", "", "directory to write CPU profiles of each measurement to; none if empty")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return o, err
	}
	if o.muster == "" {
		o.muster = filepath.Join(o.bin, "muster")
	}
	if o.parts, err = choose("-only", only, partNames()); err != nil {
		return o, err
	}
	if systems != "" {
		if o.systems, err = choose("-systems", systems, systemNames()); err != nil {
			return o, err
		}
	}
	switch {
	case o.output != "table" && o.output != "json":
		return o, fmt.Errorf("-o: there is no %q (table, json)", o.output)
	case o.rounds < 1, o.flood < 1, o.rate <= 0, o.every <= 0, o.steady <= 0:
		return o, errors.New("numbers must be more than 0")
	}
	if slices.Contains(o.parts, partReview) {
		for _, program := range []string{o.muster, release.Default().Program(o.bin, "kube-apiserver")} {
			if _, err := os.Stat(program); err != nil {
				return o, fmt.Errorf("the API server's part runs the programs in bin/: run `make build` first (%w)", err)
			}
		}
	}
	return o, nil
}

// choose reads a list of names.
func choose(name, list string, all []string) (chosen []string, err error) {
	for one := range strings.SplitSeq(list, ",") {
		if !slices.Contains(all, one) {
			return nil, fmt.Errorf("%s: there is no %q (%s)", name, one, strings.Join(all, ", "))
		}
		chosen = append(chosen, one)
	}
	return chosen, nil
}
