// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"bytes"
	"context"
	"fmt"
	"maps"
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
	positions map[string]Position
	drained   map[string]state
}

func (r *round) end() {
	if r.session != nil {
		r.session.Close()
	}
}

func (r *round) make(sources []Source) error {
	for _, source := range sources {
		var err error
		switch at := r.positions[source.Path]; {
		case source.On && at.Off:
			err = r.resume(source)
		case source.On:
			err = r.read(source)
		case at.File != "" && !at.Off:
			at.Off = true
			r.positions[source.Path] = at
		}
		if err != nil {
			return err
		}
	}
	if err := r.send(); err != nil {
		return err
	}
	// Lines that were passed over were perhaps sent by a round that failed, and are in memory only.
	if r.session != nil {
		if err := r.session.Persist(r.ctx); err != nil {
			return err
		}
	}
	r.shipper.drained = r.drained
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
		present, err := r.session.Present(r.ctx, event.File, begin)
		if err != nil {
			return err
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
	err := r.session.Insert(r.ctx, r.rows)
	r.rows = r.rows[:0]
	return err
}

func (r *round) connect() (err error) {
	if r.session == nil {
		r.session, err = r.shipper.config.Store.Begin(r.ctx)
	}
	return err
}
