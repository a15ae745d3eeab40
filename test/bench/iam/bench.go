// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// bench is one run of everything.
type bench struct {
	options  options
	place    place
	services []*service
	report   report
}

// callerCounts are how many verify at the same time.
func callerCounts() []int { return []int{1, 32} }

func (b *bench) run(ctx context.Context) (err error) {
	b.report.begin(b.options)
	if b.place.dir, err = os.MkdirTemp("", "iam-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.place.dir)) }()
	if err := os.Mkdir(filepath.Join(b.place.dir, filepath.Dir(keysSocket)), 0o700); err != nil {
		return err
	}
	fake, err := startService(ctx, os.Stderr, os.Environ(), "sts", "-dir", b.place.dir)
	if err != nil {
		return err
	}
	defer fake.close()
	b.place.sts = fake.ready
	b.services = append(b.services, fake)
	null, err := startService(ctx, os.Stderr, os.Environ(), "null", "-dir", b.place.dir)
	if err != nil {
		return err
	}
	defer null.close()
	b.place.null = null.ready
	b.services = append(b.services, null)
	keys, err := startService(ctx, os.Stderr, os.Environ(), "keys", "-socket", b.place.socket())
	if err != nil {
		return err
	}
	defer keys.close()
	b.services = append(b.services, keys)
	for round := range b.options.rounds {
		for _, part := range b.options.parts {
			if err := b.part(ctx, part, round); err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, part, err)
			}
		}
	}
	return nil
}

// part measures one part once: all systems, the order reversed every other round.
func (b *bench) part(ctx context.Context, part string, round int) error {
	all := systems()
	if round%2 == 1 {
		slices.Reverse(all)
	}
	for _, s := range all {
		if len(b.options.systems) > 0 && !slices.Contains(b.options.systems, s.name) {
			continue
		}
		before, err := tick(b.services...)
		if err != nil {
			return err
		}
		switch part {
		case partVerify:
			err = b.verify(ctx, s, round)
		case partRefused:
			err = b.refused(ctx, s, round)
		case partFlood:
			err = b.flood(ctx, s, round)
		case partReview:
			err = b.review(ctx, s, round)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		after, err := tick(b.services...)
		if err != nil {
			return err
		}
		b.report.others = append(b.report.others, after.since(before))
	}
	return nil
}

func (b *bench) verify(ctx context.Context, s system, round int) error {
	for _, callers := range callerCounts() {
		if err := b.measure(ctx, s, partVerify, "", callers, round); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) refused(ctx context.Context, s system, round int) error {
	for _, kind := range s.refuses {
		if err := b.measure(ctx, s, partRefused, kind, slices.Max(callerCounts()), round); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (b *bench) measure(ctx context.Context, s system, part, bad string, callers, round int) error {
	args := []string{
		"measure", "-dir", b.place.dir, "-sts", b.place.sts, "-system", s.name, "-bad", bad, "-callers", strconv.Itoa(callers), "-for", b.options.every.String(),
	}
	if b.options.profile != "" {
		args = append(args, "-profile", filepath.Join(b.options.profile, fmt.Sprintf("%s-%s%s-%d.pprof", part, s.name, bad, callers)))
	}
	r, err := measured(ctx, args...)
	if err != nil {
		return err
	}
	r.Part, r.System, r.Bad, r.Callers, r.Round = part, s.name, bad, callers, round
	b.report.add(r)
	fmt.Fprintf(os.Stderr, "round %d, %s %s, %d callers: %.0f/s, %.1f µs of CPU, %.0f allocations\n", round+1, s.name, bad, callers, r.Rate, r.CPU, r.Allocs)
	return nil
}
