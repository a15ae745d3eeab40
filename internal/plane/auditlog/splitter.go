// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	defaultInterval = time.Second
	// retryInterval is longer, since all parts are read to begin anew.
	retryInterval = 10 * time.Second
	// defaultPart and defaultParts make 256 MiB.
	defaultPart  = 32 << 20
	defaultParts = 8
	// batchSize is how much is written at once.
	batchSize = 256 << 10
)

// Config says which log is read and which file is written.
type Config struct {
	// Path of the API server's log; it need not be there yet.
	Path string
	// Kept is the file of the lines that are kept. Its directory must be there when the first line is.
	Kept string
	// Part is the size of one part of that file, in bytes; 32 MiB if 0. Parts is how many there are, 2 or more; 8 if 0.
	Part  int64
	Parts int
	// Interval between looks at the log; a second if 0.
	Interval time.Duration
	Log      *slog.Logger
}

// Splitter copies lines from an API server's audit log. Run is for one goroutine; State may be asked by others.
type Splitter struct {
	config Config
	store  *store
	in     *reader // nil: the oldest part is read next
	batch  []byte

	mu    sync.Mutex
	state State
}

// New returns a splitter that has read nothing yet.
func New(config Config) (*Splitter, error) {
	if config.Path == "" || config.Kept == "" || config.Log == nil || config.Parts == 1 {
		return nil, errors.New("the log of security needs the path of the audit log, its own, two parts or more, and a logger")
	}
	if config.Part <= 0 {
		config.Part = defaultPart
	}
	if config.Parts <= 0 {
		config.Parts = defaultParts
	}
	if config.Interval <= 0 {
		config.Interval = defaultInterval
	}
	return &Splitter{config: config}, nil
}

// State says what the file held when it was last looked at; nothing where nobody looks yet, and there is no splitter.
func (s *Splitter) State() State {
	if s == nil {
		return State{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Run copies until the context ends. After an error it begins anew, in a while, with what the files say.
func (s *Splitter) Run(ctx context.Context) {
	defer s.reset()
	timer := time.NewTimer(0)
	defer timer.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := s.look(ctx)
		if err == nil || ctx.Err() != nil {
			said = ""
			timer.Reset(s.config.Interval)
			continue
		}
		if err.Error() != said {
			s.config.Log.WarnContext(ctx, "cannot copy lines of the audit log; they are copied later", "path", s.config.Kept, "error", err)
		}
		said = err.Error()
		s.reset()
		timer.Reset(retryInterval)
	}
}

func (s *Splitter) reset() {
	if s.store != nil {
		s.store.close()
	}
	s.in.close()
	s.store, s.in, s.batch = nil, nil, nil
}

// look copies the lines that are new.
func (s *Splitter) look(ctx context.Context) error {
	for {
		found, err := parts(s.config.Path)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := s.begin(ctx, found); err != nil {
			return err
		}
		own, err := s.in.file.Stat()
		if err != nil {
			return fmt.Errorf("looking at the audit log: %w", err)
		}
		if own.Size() < s.in.offset { // somebody emptied it
			s.in.offset = 0
		}
		at := slices.IndexFunc(found, func(p part) bool { return os.SameFile(p.info, own) })
		// If there is a newer part, what is read now was renamed before the parts were listed, so nothing is added to
		// it after this.
		if err := s.drain(ctx); err != nil {
			return err
		}
		switch {
		case at < 0: // removed, and perhaps others after it
			if err := s.missing(ctx, found, own.ModTime()); err != nil {
				return err
			}
		case at+1 == len(found):
			return nil
		}
		if err := s.open(found[at+1].path); err != nil {
			return err
		}
	}
}

// open begins to read a part.
func (s *Splitter) open(path string) error {
	r, err := openReader(path)
	if err != nil {
		return err
	}
	s.in.close()
	s.in = r
	return nil
}

// drain copies what the part has that is read now.
func (s *Splitter) drain(ctx context.Context) error {
	err := s.in.drain(ctx, func(line []byte) error {
		line, ok := kept(line)
		if !ok {
			return nil
		}
		s.batch = append(append(s.batch, line...), '\n')
		if len(s.batch) < batchSize {
			return nil
		}
		return s.flush(ctx)
	})
	if err != nil {
		return err
	}
	return s.flush(ctx)
}

func (s *Splitter) flush(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	err := s.store.append(ctx, s.batch)
	s.batch = s.batch[:0]
	s.publish()
	return err
}

func (s *Splitter) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = s.store.state()
}

// begin opens the store, and the part in which reading goes on.
func (s *Splitter) begin(ctx context.Context, found []part) error {
	if s.store == nil {
		opened, err := openStore(ctx, s.config.Kept, s.config.Part, s.config.Parts-1)
		if err != nil {
			return err
		}
		s.store = opened
		last, ok, err := opened.last(ctx)
		if err != nil {
			return err
		}
		if ok {
			if err := s.resume(ctx, found, last); err != nil {
				return err
			}
		}
		s.publish()
	}
	if s.in != nil {
		return nil
	}
	return s.open(found[0].path)
}

// resume finds the line that was kept last in the API server's log, the newest part first, and goes on after it. If the
// line was rotated away, later lines may be missing, too, and the security log says so.
func (s *Splitter) resume(ctx context.Context, found []part, last event) error {
	id, stamp := []byte(`"auditID":"`+last.AuditID+`"`), last.Reached
	for _, p := range slices.Backward(found) {
		r, err := openReader(p.path)
		if err != nil {
			return err
		}
		begin, after := r.offset, int64(-1)
		err = r.drain(ctx, func(line []byte) error {
			begin += int64(len(line)) + 1
			if !bytes.Contains(line, id) { // most
				return nil
			}
			if e, _, ok := read(line); ok && e.AuditID == last.AuditID && e.Reached.Equal(stamp) {
				after = begin
			}
			return nil
		})
		if err != nil {
			r.close()
			return err
		}
		if after >= 0 {
			r.offset = after
			s.in = r
			return nil
		}
		r.close()
	}
	return s.missing(ctx, found, last.Reached)
}

// missing writes that lines between a moment and the first one that is left may be missing.
func (s *Splitter) missing(ctx context.Context, found []part, since time.Time) error {
	until := since
	err := eachLine(ctx, found[0].path, func(line []byte) error {
		e, _, ok := read(line)
		if !ok {
			return nil
		}
		until = e.Reached
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if until.Before(since) {
		until = since
	}
	s.config.Log.WarnContext(ctx, "lines of the audit log are gone that were not read", "since", since, "until", until)
	if err := s.store.gap(ctx, since, until); err != nil {
		return err
	}
	s.publish()
	return nil
}
