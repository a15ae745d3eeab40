// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/test/earlier"
)

const (
	// earlierCommit is what speed is measured beside, until there is a tag: the last commit before `internal/` got its
	// wings.
	earlierCommit = "144cca22d5e4dff9d270e38c422d933248feda96"
	// speedTurns is how often each of the two is measured. The least of the turns counts: whatever else runs can only
	// add to it.
	speedTurns = 3
	// speedJoins is the number of simulated machines that join.
	speedJoins = 100
	// afterJoins is for what a join causes after its node is Ready, the serving certificate for one.
	afterJoins = 5 * time.Second
	// afterUp is for what an API server allocates until it has started to be given back.
	afterUp = 5 * time.Second

	allowedPage = "docs/benchmarks.md"
	speedFile   = "docs/speed.tsv"
)

// benchSpeed measures beside an earlier commit, in turns, and fails where a ratio is higher than it may be. Nothing
// else should run meanwhile.
func benchSpeed(ctx context.Context, bin string) error {
	page, err := os.ReadFile(allowedPage)
	if err != nil {
		return err
	}
	allowed, err := parseAllowed(string(page))
	if err != nil {
		return err
	}
	before, now, err := inTurns(ctx, bin, figures.all)
	if err != nil {
		return err
	}
	ratios := compare(before, now, speedMeasures)
	if err := printRatios(os.Stdout, ratios, allowed); err != nil {
		return err
	}
	if err := recordSpeed(ctx, os.Stdout, bin, ratios); err != nil {
		return err
	}
	return judge(ratios, allowed)
}

// benchJoins measures a number of simulated machines that join beside the earlier commit, in turns.
func benchJoins(ctx context.Context, bin string, machines int) error {
	before, now, err := inTurns(ctx, bin, func(f figures, ctx context.Context, bin string) error { return f.joins(ctx, bin, machines) })
	if err != nil {
		return err
	}
	return printRatios(os.Stdout, compare(before, now, []string{joinsCPU, joinsWall}), nil)
}

// inTurns measures the programs of the earlier commit and those of bin.
func inTurns(ctx context.Context, bin string, measure func(figures, context.Context, string) error) (before, now []figures, err error) {
	beside, err := earlier.Programs(ctx, ".", earlierCommit, bin)
	if err != nil {
		return nil, nil, fmt.Errorf("building the programs of %.7s: %w", earlierCommit, err)
	}
	changed, err := earlier.Changed(ctx, ".", earlierCommit)
	if err != nil {
		return nil, nil, err
	}
	if changed > 0 {
		fmt.Printf("both run with the upstream programs and images of bin/; %d files that these are built from have changed since %.7s\n", changed, earlierCommit)
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil, nil, err
	}
	fmt.Printf("load before: %s\n", bytes.TrimSpace(load))
	for turn := range speedTurns {
		both := []string{beside, bin}
		if turn%2 == 1 {
			slices.Reverse(both)
		}
		for _, programs := range both {
			f := figures{}
			if err := measure(f, ctx, programs); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", programs, err)
			}
			if programs == bin {
				now = append(now, f)
			} else {
				before = append(before, f)
			}
		}
	}
	return before, now, nil
}

// all measures everything that speed is measured by.
func (f figures) all(ctx context.Context, bin string) error {
	if err := f.joins(ctx, bin, speedJoins); err != nil {
		return err
	}
	return f.up(ctx, bin)
}

// joins measures simulated machines that join a cluster without nodes, from the command to the last Ready node, and the
// processor time of all processes meanwhile and shortly after it.
func (f figures) joins(ctx context.Context, bin string, machines int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--provider", "simulated", "--nodes", "0"); err != nil {
		return err
	}
	before, err := t.processorSeconds()
	if err != nil {
		return err
	}
	n, began := strconv.Itoa(machines), time.Now()
	if _, err := t.muster(ctx, "scale", "nodegroup", "default", "--nodes", n, "--max", n, "--wait"); err != nil {
		return err
	}
	f[joinsWall] = time.Since(began).Seconds()
	if err := pause(ctx, afterJoins); err != nil {
		return err
	}
	after, err := t.processorSeconds()
	f[joinsCPU] = after - before
	return err
}

// up measures the time from nothing to three Ready local nodes, and then the resident memory of all processes that are
// not in a machine.
func (f figures) up(ctx context.Context, bin string) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	began := time.Now()
	if _, err := t.muster(ctx, "up", "--nodes", "3"); err != nil {
		return err
	}
	f[upWall] = time.Since(began).Seconds()
	if err := pause(ctx, afterUp); err != nil {
		return err
	}
	m, err := measureMemory(t.state())
	if err != nil {
		return err
	}
	for name, processes := range m.kib {
		for _, process := range processes {
			if !strings.HasPrefix(name, "machine: ") {
				f[planeMemory] += float64(process.resident) / 1024
			}
		}
	}
	return nil
}

// processorSeconds is what all processes outside of machines have taken so far.
func (t trial) processorSeconds() (float64, error) {
	spent, err := t.processorTime()
	var sum float64
	for _, one := range spent {
		sum += one.Seconds()
	}
	return sum, err
}

// recordSpeed keeps the ratios of a commit in a tracked file, if it is the commit that bin/ was built from.
func recordSpeed(ctx context.Context, stdout io.Writer, bin string, ratios []speedRatio) error {
	built, err := trial{bin: bin}.muster(ctx, "version", "-o", "json")
	if err != nil {
		return err
	}
	var version struct{ Muster string }
	if err := json.Unmarshal(built, &version); err != nil {
		return fmt.Errorf("reading the version of %s/muster: %w", bin, err)
	}
	out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H %cs").Output()
	if err != nil {
		return fmt.Errorf("asking git for the present commit: %w", err)
	}
	commit, date, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if _, of, _ := strings.Cut(version.Muster, "+"); of == "" || !strings.HasPrefix(commit, of) {
		fmt.Fprintf(stdout, "%s is left as it is: bin/muster is %s, and the present commit is %.8s; commit, and run `make build`\n", speedFile, version.Muster, commit)
		return nil
	}
	kept, err := os.ReadFile(speedFile)
	if err != nil {
		return err
	}
	next, err := record(string(kept), date, commit, ratios)
	if err != nil {
		return fmt.Errorf("%s: %w", speedFile, err)
	}
	return os.WriteFile(speedFile, []byte(next), 0o644) //nolint:gosec // tracked, for everybody to read
}
