// SPDX-License-Identifier: Apache-2.0

package joinlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

const (
	defaultInterval = 250 * time.Millisecond
	// maxLine is more than any event takes: the API server takes no larger request. Longer lines are passed over.
	maxLine   = 4 << 20
	chunkSize = 64 << 10
)

// FollowerConfig says which log to follow.
type FollowerConfig struct {
	Path     string        // of the audit log; it need not be there yet
	Tracker  *Tracker      // is shown every line
	Changed  func(string)  // is called with each machine that took a step; may be nil
	Interval time.Duration // between looks at the file; a quarter of a second if 0
	Log      *slog.Logger
}

// Follower reads an audit log from its beginning and then as it grows, across rotation and truncation.
type Follower struct {
	config  FollowerConfig
	file    *os.File
	offset  int64
	partial []byte // a line whose end is not written yet
	passing bool   // the line is too long: pass over it
}

// NewFollower returns a follower of the log.
func NewFollower(config FollowerConfig) (*Follower, error) {
	if config.Path == "" || config.Tracker == nil || config.Log == nil {
		return nil, errors.New("a follower of the audit log needs its path, a tracker and a logger")
	}
	if config.Interval <= 0 {
		config.Interval = defaultInterval
	}
	if config.Changed == nil {
		config.Changed = func(string) {}
	}
	return &Follower{config: config}, nil
}

// Start is Run, under the name that a controller manager calls.
func (f *Follower) Start(ctx context.Context) error { return f.Run(ctx) }

// Run follows the log until the context ends. It tries again after an error: a log is not a reason to stop the service.
func (f *Follower) Run(ctx context.Context) error {
	defer func() { f.close() }()
	ticker := time.NewTicker(f.config.Interval)
	defer ticker.Stop()
	said := ""
	for {
		if err := f.look(ctx); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if err.Error() != said {
				f.config.Log.WarnContext(ctx, "cannot follow the audit log; joins will lack steps", "path", f.config.Path, "error", err)
			}
			said = err.Error()
			f.close()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look reads the new lines. The API server rotates its log by renaming it, so the open file is read to its end first.
func (f *Follower) look(ctx context.Context) error {
	for ctx.Err() == nil {
		if f.file == nil {
			file, err := os.Open(f.config.Path)
			if err != nil {
				return fmt.Errorf("opening the audit log: %w", err)
			}
			f.file, f.offset = file, 0
		}
		current, mine, err := f.stat()
		if err != nil {
			return fmt.Errorf("looking at the audit log: %w", err)
		}
		if mine.Size() < f.offset { // it was truncated
			f.offset, f.partial, f.passing = 0, nil, false
		}
		if err := f.drain(ctx); err != nil {
			return err
		}
		if current == nil || os.SameFile(current, mine) {
			return nil
		}
		f.close()
	}
	return nil
}

// stat looks at the file that has the log's name and at the one that is open. The first is nil while nothing has the
// name: then the log is being rotated, and the open file may still grow.
func (f *Follower) stat() (current, mine os.FileInfo, err error) {
	if mine, err = f.file.Stat(); err != nil {
		return nil, nil, err
	}
	current, err = os.Stat(f.config.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mine, nil
	}
	return current, mine, err
}

func (f *Follower) drain(ctx context.Context) error {
	chunk := make([]byte, chunkSize)
	for ctx.Err() == nil {
		n, err := f.file.ReadAt(chunk, f.offset)
		f.offset += int64(n)
		f.take(chunk[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
	}
	return nil
}

// take passes whole lines on and keeps the rest.
func (f *Follower) take(data []byte) {
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			if f.passing || len(f.partial)+len(data) > maxLine {
				f.partial, f.passing = nil, true
				return
			}
			f.partial = append(f.partial, data...)
			return
		}
		if !f.passing {
			f.partial = append(f.partial, data[:end]...)
			if machine := f.config.Tracker.Line(f.partial); machine != "" {
				f.config.Changed(machine)
			}
		}
		f.partial, f.passing = f.partial[:0], false
		data = data[end+1:]
	}
}

func (f *Follower) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file, f.offset, f.partial, f.passing = nil, 0, nil, false
}
