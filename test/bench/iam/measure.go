// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// warmUp is how long a system works before it is measured: connections are made, code is paged in.
const warmUp = 300 * time.Millisecond

// measureMain measures one system in this process and prints the result.
func measureMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	var p place
	flags.StringVar(&p.dir, "dir", "", "the benchmark's directory")
	flags.StringVar(&p.sts, "sts", "", "address of the fake STS")
	name := flags.String("system", "", "what to measure")
	bad := flags.String("bad", "", "the kind of bad tokens, if they are to be refused")
	callers := flags.Int("callers", 1, "how many verify at the same time")
	length := flags.Duration("for", time.Second, "how long")
	profile := flags.String("profile", "", "file for a CPU profile")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, ok := systemOf(*name)
	if !ok {
		return fmt.Errorf("there is no system %q", *name)
	}
	tokens, err := tokensFor(ctx, s, *bad)
	if err != nil {
		return err
	}
	one, err := s.start(ctx, p)
	if err != nil {
		return err
	}
	m := meter{check: one, tokens: tokens, refused: *bad != "", callers: *callers}
	if s.known {
		if err := m.all(ctx); err != nil {
			return err
		}
	}
	if _, err := m.run(ctx, warmUp); err != nil {
		return err
	}
	if *profile != "" {
		stop, err := startProfile(*profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	r, err := m.run(ctx, *length)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func tokensFor(ctx context.Context, s system, bad string) ([]string, error) {
	if bad == "" {
		return newTokens(ctx, s.tokens, s.keys)
	}
	maker, err := newBadTokens(ctx)
	if err != nil {
		return nil, err
	}
	tokens := make([]string, manyTokens)
	for i := range tokens {
		tokens[i] = maker.make(bad, i)
	}
	return tokens, nil
}

func startProfile(path string) (stop func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// meter has callers verify tokens, one after the other in turns.
type meter struct {
	check   check
	tokens  []string
	refused bool // whether they should be
	callers int
	next    atomic.Int64
}

// all verifies each token once.
func (m *meter) all(ctx context.Context) error {
	for range m.tokens {
		if err := m.one(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *meter) one(ctx context.Context) error {
	err := m.check(ctx, m.tokens[int(m.next.Add(1))%len(m.tokens)])
	switch {
	case m.refused && err == nil:
		return errors.New("a bad token was accepted")
	case !m.refused && err != nil:
		return fmt.Errorf("a good token was refused: %w", err)
	}
	return nil
}

// run goes on for a while and tells what it cost.
func (m *meter) run(ctx context.Context, length time.Duration) (result, error) {
	var group sync.WaitGroup
	var count atomic.Int64
	var once sync.Once
	var failed error
	var stop atomic.Bool
	timer := time.AfterFunc(length, func() { stop.Store(true) })
	defer timer.Stop()
	before, began := usage(), time.Now()
	for range m.callers {
		group.Go(func() {
			done := int64(0)
			for !stop.Load() && ctx.Err() == nil {
				if err := m.one(ctx); err != nil {
					once.Do(func() { failed = err })
					stop.Store(true)
				}
				done++
			}
			count.Add(done)
		})
	}
	group.Wait()
	took, after := time.Since(began), usage()
	if failed == nil {
		failed = ctx.Err()
	}
	n := float64(count.Load())
	return result{
		Rate: n / took.Seconds(), CPU: (after.cpu - before.cpu).Seconds() * 1e6 / n,
		Allocs: float64(after.allocs-before.allocs) / n, Bytes: float64(after.bytes-before.bytes) / n,
	}, failed
}

// used is what this process has used so far.
type used struct {
	cpu           time.Duration
	allocs, bytes uint64
}

func usage() used {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of this process it cannot fail
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return used{cpu: time.Duration(u.Utime.Nano() + u.Stime.Nano()), allocs: m.Mallocs, bytes: m.TotalAlloc}
}
