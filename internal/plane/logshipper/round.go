// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/platform/logs"
)

const (
	// requestBytes is how much is sent to the log store at once, and one row more.
	requestBytes = 1 << 20
	// ahead is how much later than its file's last change a line may say that it is.
	ahead = time.Hour
)

// round reads what is new in all logs, has the log store take it, and writes down how far it came.
type round struct {
	shipper   *Shipper
	ctx       context.Context //nolint:containedctx // a round is one call
	session   *logstore.Session
	rows      []byte
	lost      []Source // whose lines are gone
	left      int64    // bytes that may still be read
	next      string   // path of the log that the next round begins with, if this one reads no more
	broken    error    // of the log store: what it has is not known any more
	positions map[string]Position
	drained   map[string]state
}

func (r *round) end() {
	if r.session != nil {
		r.session.Close()
	}
}

// make makes the round. Failed are the errors of logs that could not be read, which stay where they were: a log is written
// by a component, which may have put anything in its place, and keeps no other log from being read.
func (r *round) make(sources []Source) (failed []error, err error) {
	sources = r.inTurn(sources)
	for i, source := range sources {
		err := r.one(source)
		switch {
		case r.broken != nil:
			return nil, r.broken
		case err != nil:
			delete(r.shipper.known, source.Path) // of some of its lines
			failed = append(failed, fmt.Errorf("%s: %w", source.Path, err))
		}
		if r.left <= 0 && r.next == "" {
			r.next = sources[(i+1)%len(sources)].Path
		}
	}
	return failed, r.keep()
}

// inTurn are the logs in the order in which the round reads them. It begins with the log that the round before did not come to:
// a log that grows as fast as it is read would keep those after it from being read at all.
func (r *round) inTurn(sources []Source) []Source {
	begin := max(slices.IndexFunc(sources, func(s Source) bool { return s.Path == r.shipper.next }), 0)
	return slices.Concat(sources[begin:], sources[:begin])
}

// one brings one log forward.
func (r *round) one(source Source) error {
	switch at := r.positions[source.Path]; {
	case source.On && at.Off:
		return r.resume(source)
	case source.On:
		return r.read(source)
	case at.File != "" && !at.Off:
		at.Off = true
		r.positions[source.Path] = at
	}
	return nil
}

// keep has the log store have all rows on its disk, and writes down how far the round came.
func (r *round) keep() error {
	if err := r.send(); err != nil {
		return err
	}
	// Lines that were passed over were perhaps sent by a round that failed, and are in memory only.
	if r.session != nil {
		if err := r.session.Persist(r.ctx); err != nil {
			return err
		}
	}
	r.shipper.drained, r.shipper.next = r.drained, r.next
	forget(r.positions)
	if maps.Equal(r.positions, r.shipper.positions) {
		return nil
	}
	if err := writeRecord(r.shipper.config.Record, r.positions); err != nil {
		return err
	}
	r.shipper.positions = r.positions
	for _, source := range r.lost {
		r.shipper.config.Log.WarnContext(r.ctx, "lines of a log are gone that were not kept", "path", source.Path, "stream", source.Stream)
	}
	return nil
}

// resume begins where a log is now that was switched on again.
func (r *round) resume(source Source) error {
	found, growing, err := files(source)
	if err != nil || len(found) == 0 {
		return err
	}
	last := found[len(found)-1]
	f, err := open(last.path)
	if f == nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("looking at a log: %w", err)
	}
	// The end of the last whole line that is there.
	from := max(0, info.Size()-2*logevent.MaxText)
	end, err := lines(f, from, info.Size()-from, growing, func(int64, []byte, bool) error { return nil })
	if err != nil {
		return err
	}
	r.positions[source.Path] = Position{File: last.id, Offset: end}
	return nil
}

// read reads what is new in one log.
func (r *round) read(source Source) error {
	now := stateOf(source.Path)
	if now != (state{}) && now == r.shipper.drained[source.Path] {
		r.drained[source.Path] = now
		return nil
	}
	found, growing, err := files(source)
	if err != nil {
		return err
	}
	before := r.positions[source.Path]
	at, offset, lost := locate(idsOf(found), before)
	if at == len(found) {
		return nil
	}
	if lost {
		r.lost = append(r.lost, source)
	}
	for i := at; i < len(found) && r.left > 0; i++ {
		position := Position{File: found[i].id, Time: before.Time}
		if i == at {
			position.Offset = offset
		}
		whole, err := r.readFile(source, found[i], &position, growing && i+1 == len(found))
		if err != nil {
			return err
		}
		r.positions[source.Path] = position
		if !whole {
			return nil
		}
		before = position
	}
	if r.left > 0 {
		r.drained[source.Path] = now
	}
	return nil
}

func idsOf(found []file) []string {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.id
	}
	return ids
}

// readFile reads what follows a position in one file, and moves the position. Whole says that the file has no more now.
func (r *round) readFile(source Source, from file, position *Position, growing bool) (whole bool, err error) {
	f, err := open(from.path)
	if f == nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	id, err := identity(source, f)
	if err != nil || id != from.id {
		return false, err // it was rotated meanwhile, and is looked for again
	}
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("looking at a log: %w", err)
	}
	if info.Size() <= position.Offset {
		return true, nil
	}
	ref, begin := info.ModTime().In(source.Zone), position.Offset
	position.Offset, err = lines(f, begin, r.left, growing, func(offset int64, line []byte, cut bool) error {
		position.Time = stamp(line, ref, position.Time)
		if len(bytes.TrimSpace(line)) == 0 {
			return nil // CloudWatch has no empty event either
		}
		return r.add(source, logevent.Event{
			Log: source.Log, Stream: source.Stream, File: from.id, Offset: offset, Time: position.Time, Text: line, Cut: cut,
		}, begin)
	})
	r.left -= position.Offset - begin
	return r.left > 0, err
}

// stamp is the time of a line: its own, that of the line before it, or that of its file.
func stamp(line []byte, ref, before time.Time) time.Time {
	t, ok := logs.Stamp(line, ref)
	switch {
	case ok && !t.After(ref.Add(ahead)):
		return t
	case ok || before.IsZero():
		return ref
	default:
		return before
	}
}

// add sends a line, unless the log store has it.
func (r *round) add(source Source, event logevent.Event, begin int64) error {
	s := r.shipper
	if s.known[source.Path].file != event.File {
		if err := r.connect(); err != nil {
			return err
		}
		var present map[int64]bool
		if present, r.broken = r.session.Present(r.ctx, event.File, begin); r.broken != nil {
			return r.broken
		}
		if s.known == nil {
			s.known = map[string]known{}
		}
		s.known[source.Path] = known{event.File, present}
	}
	if present := s.known[source.Path].present; present[event.Offset] {
		delete(present, event.Offset)
		return nil
	}
	r.rows = event.Append(r.rows)
	if len(r.rows) < requestBytes {
		return nil
	}
	return r.send()
}

// send has the log store take the rows that were read.
func (r *round) send() error {
	if len(r.rows) == 0 {
		return nil
	}
	if err := r.connect(); err != nil {
		return err
	}
	r.broken = r.session.Insert(r.ctx, r.rows)
	r.rows = r.rows[:0]
	return r.broken
}

func (r *round) connect() error {
	if r.session == nil {
		r.session, r.broken = r.shipper.config.Store.Begin(r.ctx)
	}
	return r.broken
}
