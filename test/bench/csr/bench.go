// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"muster.dev/muster/test/plane"
)

// load is one thing that is done to a system.
type load struct {
	kind string // client, mixed, single
	size int
	rate float64 // per second; 0 is all at once
}

func (l load) String() string {
	name := fmt.Sprintf("burst of %d", l.size)
	if l.rate > 0 {
		name = fmt.Sprintf("steady %g/s", l.rate)
	}
	if l.kind != "client" {
		name += ", " + l.kind
	}
	return name
}

// bench is one run of everything.
type bench struct {
	options options
	fleet   *fleet
	report  report
}

func (b *bench) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.limit, errors.New("the benchmark takes longer than -limit allows"))
	defer cancel()
	b.report.begin(b.options)
	var err error
	if b.fleet, err = newFleet(b.needed()); err != nil {
		return err
	}
	for round := range b.options.rounds {
		order := slices.Clone(b.options.systems)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, name := range order {
			s, _ := systemOf(name)
			if s.slow && round >= b.options.slowRounds {
				continue
			}
			if err := b.system(ctx, round, s); err != nil {
				if cause := context.Cause(ctx); cause != nil {
					err = cause
				}
				return fmt.Errorf("round %d, %s: %w", round+1, name, err)
			}
		}
	}
	b.report.leftOut = b.leftOut()
	return nil
}

// loads are what is done to a system, the largest last: what is live then is what its memory is measured with.
func (b *bench) loads(s system) []load {
	o := b.options
	bursts, rate := o.bursts, o.rate
	if s.slow {
		bursts, rate = o.slowBursts, o.slowRate
	}
	var all []load
	if rate > 0 {
		all = append(all, load{"client", int(rate * o.steady.Seconds()), rate})
	}
	for _, l := range []load{{"single", o.single, 0}, {"mixed", o.mixed, 0}} {
		if l.size > 0 && s.takes(l.kind) {
			all = append(all, l)
		}
	}
	for _, n := range slices.Sorted(slices.Values(bursts)) {
		all = append(all, load{"client", n, 0})
	}
	return all
}

// needed is how many machines one system meets in one round. Each request is of a machine of its own, plus a first one
// that tells that the system works.
func (b *bench) needed() int {
	most := 0
	for _, name := range b.options.systems {
		s, _ := systemOf(name)
		n := 1
		for _, l := range b.loads(s) {
			n += l.size
		}
		most = max(most, n)
	}
	return most
}

// leftOut tells what a reader might look for in vain.
func (b *bench) leftOut() []string {
	var lines []string
	o := b.options
	for _, name := range o.systems {
		s, _ := systemOf(name)
		if !s.takes("mixed") && o.mixed > 0 {
			lines = append(lines, name+": the mixed burst, as upstream approves no serving certificates")
		}
		if !s.slow {
			continue
		}
		for _, n := range o.bursts {
			if !slices.Contains(o.slowBursts, n) {
				lines = append(lines, fmt.Sprintf("%s: burst of %d, which takes about %d s (-slow-bursts)", name, n, n/10))
			}
		}
		if o.slowRounds < o.rounds {
			lines = append(lines, fmt.Sprintf("%s: %d of %d rounds (-slow-rounds)", name, o.rounds-o.slowRounds, o.rounds))
		}
	}
	return lines
}

// system measures one system in one round, on a control plane of its own.
func (b *bench) system(ctx context.Context, round int, s system) (err error) {
	p, err := plane.Start(ctx, plane.Config{Bin: b.options.bin, Flow: b.options.flow})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	controller, err := s.start(ctx, b, p)
	if err != nil {
		return err
	}
	m, err := newMeter(p, controller)
	if err != nil {
		return err
	}
	begin := time.Now()
	requests, err := b.fleet.requests(load{"client", 1, 0}, 0)
	if err != nil {
		return err
	}
	next := 1
	if _, err := m.measure(ctx, load{"client", 1, 0}, requests, 1); err != nil {
		return fmt.Errorf("waiting for its first certificate: %w", err)
	}
	fmt.Fprintf(os.Stderr, "round %d, %s: works after %.1f s\n", round+1, s.name, time.Since(begin).Seconds())
	for _, l := range b.loads(s) {
		if err := m.clear(ctx); err != nil {
			return err
		}
		requests, err := b.fleet.requests(l, next)
		if err != nil {
			return err
		}
		next += l.size
		result, err := m.measure(ctx, l, requests, b.options.concurrency)
		if err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
		result.System, result.Round = s.name, round
		b.report.add(result)
		fmt.Fprintf(os.Stderr, "round %d, %s, %s: %.0f/s, p50 %.0f ms, p99 %.0f ms, controller %.2f ms/CSR\n",
			round+1, s.name, l, result.Rate, result.P50, result.P99, result.ControllerCPU)
	}
	return nil
}
