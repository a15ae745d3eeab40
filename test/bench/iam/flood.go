// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/test/plane"
)

// The floods: none to compare with, one that is paced, and all that can be.
const (
	loadQuiet = "no flood"
	loadPaced = "a flood of 10,000 bad tokens/s"

	pacedRate = 10_000
	pacedTime = 5 * time.Second
	// flatMiB is how much more memory a flood may take than its first twentieth did.
	flatMiB = 4
)

func loadWhole(tokens int) string { return fmt.Sprintf("a flood of %d bad tokens", tokens) }

// flood has one system refuse bad tokens while somebody has good ones.
func (b *bench) flood(ctx context.Context, s system, round int) error {
	if !s.server || s.name == "shipped" || s.name == "pool" { // which remember nothing, and ask STS about two of three
		return nil
	}
	for _, f := range []struct {
		load         string
		tokens, rate int
	}{
		{loadQuiet, 0, 0},
		{loadPaced, int(pacedRate * pacedTime.Seconds()), pacedRate},
		{loadWhole(b.options.flood), b.options.flood, 0},
	} {
		r, err := measured(ctx, "flood", "-dir", b.place.dir, "-sts", b.place.sts, "-system", s.name, "-tokens", strconv.Itoa(f.tokens), "-rate", strconv.Itoa(f.rate))
		if err != nil {
			return fmt.Errorf("%s: %w", f.load, err)
		}
		r.Part, r.System, r.Load, r.Round = partFlood, s.name, f.load, round
		b.report.add(r)
		fmt.Fprintf(os.Stderr, "round %d, %s, %s: %.0f/s, good p99 %.2f ms, heap %.1f to %.1f MiB\n", round+1, s.name, f.load, r.Rate, r.P99, r.Before, r.Heap)
	}
	return nil
}

// floodMain puts a flood on one system in this process and prints the result.
func floodMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("flood", flag.ContinueOnError)
	var p place
	var f flooding
	flags.StringVar(&p.dir, "dir", "", "the benchmark's directory")
	flags.StringVar(&p.sts, "sts", "", "address of the fake STS")
	name := flags.String("system", "", "what to measure")
	flags.IntVar(&f.tokens, "tokens", 0, "how many bad tokens; 0 is quiet")
	flags.Float64Var(&f.rate, "rate", 0, "bad tokens per second; 0 is as many as can be")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, ok := systemOf(*name)
	if !ok {
		return fmt.Errorf("there is no system %q", *name)
	}
	var err error
	if f.good, err = newTokens(ctx, s.tokens, s.keys); err != nil {
		return err
	}
	if f.bad, err = newBadTokens(ctx); err != nil {
		return err
	}
	if f.check, err = s.start(ctx, p); err != nil {
		return err
	}
	// Their keys are known to be good then, and as many good tokens are remembered as can be: what memory grows by is
	// due to bad ones. The first half is forgotten again.
	for _, token := range append(slices.Clip(f.good), f.bad.first) {
		if err := f.check(ctx, token); err != nil {
			return err
		}
	}
	r, err := f.run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// flooding is one flood.
type flooding struct {
	check    check
	good     []string
	bad      badTokens
	tokens   int
	rate     float64
	next     atomic.Int64
	accepted atomic.Int64
	heap     []float64 // in use after a collection, in MiB, after each twentieth
}

func (f *flooding) run(ctx context.Context) (result, error) {
	stop := make(chan struct{})
	var latencies []float64
	var failed error
	var group sync.WaitGroup
	group.Go(func() { latencies, failed = f.goodOnes(ctx, stop) })
	began := time.Now()
	if f.tokens == 0 {
		time.Sleep(pacedTime)
	}
	var bad sync.WaitGroup
	for range slices.Max(callerCounts()) {
		bad.Go(func() { f.badOnes(ctx, began) })
	}
	bad.Wait()
	took := time.Since(began)
	close(stop)
	group.Wait()
	switch {
	case failed != nil:
		return result{}, failed
	case f.accepted.Load() > 0:
		return result{}, fmt.Errorf("%d bad tokens were accepted", f.accepted.Load())
	case len(latencies) == 0:
		return result{}, errors.Join(errors.New("no good token was verified"), ctx.Err())
	}
	slices.Sort(latencies)
	r := result{
		Rate: float64(f.tokens) / took.Seconds(),
		P50:  percentile(latencies, 50), P99: percentile(latencies, 99), Max: latencies[len(latencies)-1],
	}
	if len(f.heap) > 1 && f.rate == 0 {
		r.Before, r.Heap = f.heap[0], slices.Max(f.heap[1:])
	}
	usage, err := plane.UsageOf(os.Getpid())
	r.Peak = float64(usage.Peak) / (1 << 20)
	return r, err
}

// badOnes verifies bad tokens of all kinds until there are none left.
func (f *flooding) badOnes(ctx context.Context, began time.Time) {
	kinds := []string{badForm, badSignature, badKey}
	twentieth := int64(max(1, f.tokens/20))
	for ctx.Err() == nil {
		n := f.next.Add(1)
		if n > int64(f.tokens) {
			return
		}
		if f.rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(n) / f.rate * float64(time.Second)))))
		}
		if f.check(ctx, f.bad.make(kinds[n%3], int(n))) == nil {
			f.accepted.Add(1)
		}
		if n%twentieth == 0 && f.rate == 0 {
			f.collect()
		}
	}
}

// collect notes how much memory is in use. Twentieths come one after the other: collecting takes less time than one of
// them.
func (f *flooding) collect() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap = append(f.heap, float64(m.HeapAlloc)/(1<<20))
}

// goodOnes verifies good tokens of which nothing is known, 200 a second, and tells how many milliseconds each took.
func (f *flooding) goodOnes(ctx context.Context, stop chan struct{}) (took []float64, err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, token := range f.good {
		select {
		case <-stop:
			return took, nil
		case <-ctx.Done():
			return took, ctx.Err()
		case <-tick.C:
		}
		began := time.Now()
		if err := f.check(ctx, token); err != nil {
			return took, fmt.Errorf("a good token was refused: %w", err)
		}
		took = append(took, float64(time.Since(began))/float64(time.Millisecond))
	}
	<-stop
	return took, nil
}

// percentile of sorted values, by nearest rank.
func percentile(sorted []float64, p float64) float64 {
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}
