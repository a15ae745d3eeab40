// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/logstore"
)

const (
	defaultInterval = time.Second
	// retryInterval is the pause after a round that failed.
	retryInterval = 2 * time.Second
	// quiet is how long rounds may fail before people are told: a process that starts needs a while.
	quiet         = 10 * time.Second
	defaultBudget = 64 << 20
)

// Config says what is read and where it goes.
type Config struct {
	// Sources lists the logs of all clusters that run; each path is there once. It is called before each round.
	Sources func() []Source
	// Store takes the lines. Ready has its process run, and is called before each round that has a log to keep; its error is
	// why there is none.
	Store *logstore.Store
	Ready func() error
	// Record is the path of the file of positions.
	Record string
	// Interval between rounds; a second if 0.
	Interval time.Duration
	// Budget is how many bytes of all logs one round reads; 64 MiB if 0. A round that read that much is followed by the next
	// one at once.
	Budget int64
	Log    *slog.Logger
}

// Shipper brings logs to the log store. Run is for one goroutine; Note may be asked by others.
type Shipper struct {
	config    Config
	positions map[string]Position // by path; nil until the record was read
	known     map[string]known    // by path; answers of the log store since a round failed last
	drained   map[string]state    // by path; how the newest file was when all of its log had been read
	next      string              // path of the log that a round begins with, if that is not the first one
	failing   time.Time           // since when rounds fail; zero if they do not

	mu   sync.Mutex
	note string
}

// known is what the log store has of a file beyond a position.
type known struct {
	file    string
	present map[int64]bool
}

// New returns a shipper that has read nothing yet.
func New(config Config) (*Shipper, error) {
	if config.Sources == nil || config.Store == nil || config.Ready == nil || config.Record == "" || config.Log == nil {
		return nil, errors.New("a shipper of logs needs their sources, a log store that it can have run, the path of its record and a logger")
	}
	if config.Interval <= 0 {
		config.Interval = defaultInterval
	}
	config.Budget = cmp.Or(config.Budget, defaultBudget)
	return &Shipper{config: config}, nil
}

// Note says why logs that are to be kept are not; empty if they are, or while there is no shipper.
func (s *Shipper) Note() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note
}

// Run brings logs to the log store until the context ends.
func (s *Shipper) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		more, err := s.turn(ctx)
		switch s.tell(ctx, err, time.Now()); {
		case more:
			timer.Reset(0)
		case err != nil:
			timer.Reset(retryInterval)
		default:
			timer.Reset(s.config.Interval)
		}
	}
}

// turn makes one round, if a log is to be kept. More says that there is more to read now, also beside logs that could not be
// read.
func (s *Shipper) turn(ctx context.Context) (more bool, err error) {
	sources := s.config.Sources()
	on := false
	for _, source := range sources {
		on = on || source.On
	}
	if !on && s.positions == nil {
		if _, err := os.Stat(s.config.Record); errors.Is(err, os.ErrNotExist) {
			return false, nil // nobody has ever asked for logs
		}
	}
	if s.positions == nil {
		if s.positions, err = readRecord(s.config.Record); err != nil {
			return false, err
		}
	}
	if on {
		if err := s.config.Ready(); err != nil {
			return false, err
		}
	}
	r := round{shipper: s, ctx: ctx, left: s.config.Budget, positions: maps.Clone(s.positions), drained: map[string]state{}}
	defer r.end()
	failed, err := r.make(sources)
	if err != nil {
		s.known, s.drained = nil, nil // rows that were sent may be there or not
		return false, err
	}
	return r.left <= 0, unread(failed)
}

// unread is the error of logs that could not be read, in one line; nil if there are none.
func unread(failed []error) error {
	if len(failed) < 2 {
		return errors.Join(failed...)
	}
	return fmt.Errorf("%w; nor can %d other logs be read", failed[0], len(failed)-1)
}

// tell logs a failure once, and notes it for people after a while.
func (s *Shipper) tell(ctx context.Context, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || ctx.Err() != nil {
		s.failing, s.note = time.Time{}, ""
		return
	}
	if s.failing.IsZero() {
		s.failing = now
	}
	note := "logs of control planes are not kept now, and are later: " + err.Error()
	if now.Sub(s.failing) >= quiet && s.note != note {
		s.config.Log.WarnContext(ctx, "cannot keep logs of control planes; they are kept later", "error", err)
		s.note = note
	}
}

// forget drops the positions of logs whose directory is gone, with their cluster.
func forget(positions map[string]Position) {
	for path := range positions {
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
			delete(positions, path)
		}
	}
}
