// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// outcome is what came of a story.
type outcome struct {
	chosen
	took   time.Duration
	failed bool
	notRun string // why it did not run; "" if it did
}

// runner runs stories as processes, several at the same time, within a clock.
type runner struct {
	command func(ctx context.Context, s story) *exec.Cmd // prints events of `go test -json`
	build   func(ctx context.Context, target string) error
	out     io.Writer
	slots   int
	times   times
	until   time.Time // no story begins that would probably not end by then; zero for no limit
	beside  int       // a process group that is stopped while a story runs alone; 0 for none
	built   bool      // a story that needs more than `make build` has run

	mu       sync.Mutex
	expected time.Duration // of the stories that have ended
	spent    time.Duration
}

// run runs stories in their order. A story that runs alone begins when all stories before it have ended.
func (r *runner) run(ctx context.Context, list []chosen) []outcome {
	outcomes := make([]outcome, len(list))
	free := make(chan struct{}, r.slots)
	var running sync.WaitGroup
	for n, c := range list {
		if c.alone {
			running.Wait()
		}
		free <- struct{}{}
		if why := r.refuses(ctx, c); why != "" {
			outcomes[n] = outcome{chosen: c, notRun: why}
			<-free
			continue
		}
		r.built = r.built || c.needs != ""
		running.Go(func() {
			defer func() { <-free }()
			outcomes[n] = r.one(ctx, c)
		})
		if c.alone {
			running.Wait()
		}
	}
	running.Wait()
	return outcomes
}

// refuses says why a story must not begin now; "" if it may.
func (r *runner) refuses(ctx context.Context, c chosen) string {
	if ctx.Err() != nil {
		return "interrupted"
	}
	if r.until.IsZero() {
		return ""
	}
	expected := r.slowed(r.times.of(c.name))
	if c.needs != "" {
		if r.built {
			return "another story of this run needed something built"
		}
		expected += r.slowed(buildTime)
	}
	if left := time.Until(r.until); expected > left {
		return fmt.Sprintf("takes about %d s of the %d that are left", int(expected.Seconds()), max(0, int(left.Seconds())))
	}
	return ""
}

// buildTime is expected of what a story needs built besides `make build`: `make addons` takes that with nothing in Go's
// caches.
const buildTime = 8 * time.Minute

// slowed is how long something takes on this machine today, by what stories have taken so far.
func (r *runner) slowed(d time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spent <= r.expected {
		return d
	}
	return time.Duration(float64(d) * float64(r.spent) / float64(r.expected))
}

// one runs a story to its end.
func (r *runner) one(ctx context.Context, c chosen) outcome {
	began := time.Now()
	if c.alone && r.beside > 0 {
		_ = syscall.Kill(-r.beside, syscall.SIGSTOP) // it may have ended
		defer func() { _ = syscall.Kill(-r.beside, syscall.SIGCONT) }()
	}
	var err error
	if c.needs != "" {
		if err = r.build(ctx, c.needs); err != nil {
			r.say(fmt.Sprintf("building what %s needs (make %s): %v", c.name, c.needs, err))
		}
	}
	if err == nil {
		err = r.execute(ctx, c.story, r.out)
	}
	took := time.Since(began)
	if _, known := r.times[c.name]; known && c.needs == "" { // builds and guesses say nothing about the machine
		r.mu.Lock()
		r.expected += r.times.of(c.name)
		r.spent += took
		r.mu.Unlock()
	}
	return outcome{chosen: c, took: took, failed: err != nil}
}

// execute passes on what a story prints, in whole lines.
func (r *runner) execute(ctx context.Context, s story, to io.Writer) error {
	cmd := r.command(ctx, s)
	lines := &lineWriter{mu: &r.mu, to: to}
	var talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = lines, &talk
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	lines.flush()
	var status *exec.ExitError
	if talk.Len() > 0 || err != nil && !errors.As(err, &status) {
		r.say(fmt.Sprintf("%s: %s%v", s.name, talk.String(), err))
	}
	return err //nolint:wrapcheck // whether there is one is all that is asked
}

func (r *runner) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.out, text)
}

// rounds runs a story that is not steady several times and counts how often it failed. Its output is kept from the
// counts of tests.
func (r *runner) rounds(ctx context.Context, s story, n int, log io.Writer) (failed int) {
	for range n {
		if ctx.Err() != nil {
			return failed
		}
		if err := r.execute(ctx, s, log); err != nil {
			failed++
		}
	}
	return failed
}

// lineWriter passes on whole lines, so that those of several processes do not mix.
type lineWriter struct {
	mu      *sync.Mutex
	to      io.Writer
	partial []byte
}

func (w *lineWriter) Write(data []byte) (int, error) {
	w.partial = append(w.partial, data...)
	if end := bytes.LastIndexByte(w.partial, '\n') + 1; end > 0 {
		w.mu.Lock()
		_, err := w.to.Write(w.partial[:end])
		w.mu.Unlock()
		w.partial = append([]byte(nil), w.partial[end:]...)
		if err != nil {
			return 0, fmt.Errorf("passing on what a story prints: %w", err)
		}
	}
	return len(data), nil
}

func (w *lineWriter) flush() {
	if len(w.partial) > 0 {
		_, _ = w.Write([]byte("\n"))
	}
}
