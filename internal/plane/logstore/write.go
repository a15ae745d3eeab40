// SPDX-License-Identifier: Apache-2.0

package logstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"muster.dev/muster/internal/plane/logevent"
)

const (
	// mostWaiting bounds in bytes what waits to be written.
	mostWaiting = 32 << 20
	// writeTime is how long a group of batches may take, its turn included.
	writeTime = time.Minute
	// startTime is how long a process that does not answer is waited for: it is started, or started again.
	startTime = 10 * time.Second
)

// ErrBusy says that too much waits to be written: try again.
var ErrBusy = errors.New("too many log events wait for the log store's disk")

// Batch is rows (package logevent) that are written together. A batch that is written again has the same File, and its rows
// that are there already are not written.
type Batch struct {
	// File is the identity of the batch. Row i has it as its @file, and i as its @offset.
	File string
	Rows [][]byte
	// First and Last are the range of the rows' times; both belong to it.
	First, Last time.Time
}

func (b Batch) size() (n int) {
	for _, row := range b.Rows {
		n += len(row)
	}
	return n
}

// group is batches that are written at once.
type group struct {
	batches []Batch
	bytes   int
	done    chan struct{}
	err     error
}

// Write returns when the rows of a batch are on the disk. After an error any of them may be there.
func (s *Store) Write(ctx context.Context, b Batch) error {
	g, first, err := s.join(b)
	if err != nil {
		return err
	}
	if first {
		// Others wait for it, too, and their batches are in it.
		g.err = s.commit(context.WithoutCancel(ctx))
		close(g.done)
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the log store: %w", ctx.Err())
	}
}

// join puts a batch into the group that waits. First says that there was none.
func (s *Store) join(b Batch) (g *group, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.next == nil
	if first {
		s.next = &group{done: make(chan struct{})}
	}
	if s.next.bytes += b.size(); s.next.bytes > mostWaiting && !first {
		s.next.bytes -= b.size()
		return nil, false, ErrBusy
	}
	s.next.batches = append(s.next.batches, b)
	return s.next, first, nil
}

// leave takes the group that waits: whoever comes now begins the next one.
func (s *Store) leave() *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.next
	s.next = nil
	return g
}

// commit writes the group that waits.
func (s *Store) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var g *group
	err := repeated(func() error { return s.commitOnce(ctx, &g) })
	if g == nil {
		s.leave()
	}
	return err
}

// commitOnce takes the group that waits, if g is nil, and writes g.
func (s *Store) commitOnce(ctx context.Context, g **group) error {
	session, err := s.await(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.hold(ctx); err != nil {
		return err
	}
	if *g == nil {
		*g = s.leave()
	}
	if err := session.flush(ctx); err != nil {
		return err
	}
	written := map[string]bool{}
	for _, b := range (*g).batches {
		if written[b.File] {
			continue // it was sent twice at once
		}
		written[b.File] = true
		if err := session.insertOnce(ctx, b); err != nil {
			return err
		}
	}
	return session.Persist(ctx)
}

// await connects to a process that is perhaps being started.
func (s *Store) await(ctx context.Context) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		session, err := s.Begin(ctx)
		if err == nil {
			return session, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(cmp.Or(s.Poll, defaultPoll)):
		}
	}
}

// insertOnce inserts the rows of a batch that are not there yet. Rows that were inserted before must be visible to queries.
func (s *Session) insertOnce(ctx context.Context, b Batch) error {
	present, err := s.offsets(ctx, fmt.Sprintf("%q:=%q %s | fields %q", logevent.File, b.File, Between(b.First, b.Last), logevent.Offset))
	if err != nil {
		return err
	}
	var rows bytes.Buffer
	for i, row := range b.Rows {
		if !present[int64(i)] {
			_, _ = rows.Write(row) // a buffer takes everything
		}
	}
	if rows.Len() == 0 {
		return nil
	}
	return s.Insert(ctx, rows.Bytes())
}

// nanoseconds is RFC 3339 with all digits: of fewer digits VictoriaLogs takes the range that they leave open.
const nanoseconds = "2006-01-02T15:04:05.000000000Z07:00"

// Between is the filter of LogsQL for a range of times; both ends belong to it. A time in VictoriaLogs is nanoseconds since 1970 in
// 64 bits: with a time before 1678 or after 2262 it would find nothing, or refuse the query. No row has such a time.
func Between(first, last time.Time) string {
	return fmt.Sprintf("_time:[%s, %s]", kept(first).Format(nanoseconds), kept(last).Format(nanoseconds))
}

// kept is the time from 1970 to 2262 that is the nearest one.
func kept(at time.Time) time.Time {
	switch oldest, newest := time.Unix(0, 0), time.Unix(0, math.MaxInt64); {
	case at.Before(oldest):
		return oldest.UTC()
	case at.After(newest):
		return newest.UTC()
	}
	return at.UTC()
}
