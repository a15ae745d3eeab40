// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// store is the file of the lines that are kept, with its older parts, NAME-00000001.log and so on: the first number
// that is left says whether a part was removed.
type store struct {
	path   string
	limit  int64 // of a part, in bytes
	keep   int   // older parts
	file   *os.File
	size   int64
	older  []string  // the oldest first
	first  time.Time // when the first line was written that is left; zero while there is none
	gapEnd time.Time // the end of the last gap; zero if there is none
}

// gap is a line that says that lines are missing.
type gap struct {
	Kind       string    `json:"kind"`
	APIVersion string    `json:"apiVersion"`
	Since      time.Time `json:"since"`
	Reached    time.Time `json:"stageTimestamp"` // the end; under this name package logs finds it
	Message    string    `json:"message"`
}

var gapBegin = []byte(`{"kind":"Gap",`)

// openStore opens the file, and cuts off a line that was not written to its end.
func openStore(ctx context.Context, path string, limit int64, keep int) (*store, error) {
	s := &store{path: path, limit: limit, keep: keep}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	if err := s.findGap(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *store) open(ctx context.Context) error {
	var err error
	if s.older, err = older(s.path); err != nil {
		return err
	}
	if s.file, err = openOwn(s.path); err != nil {
		return fmt.Errorf("opening the log of security: %w", err)
	}
	if s.size, err = wholeLines(s.file); err == nil {
		err = s.file.Truncate(s.size)
	}
	if err != nil {
		s.close()
		return fmt.Errorf("cutting off half a line of %s: %w", s.path, err)
	}
	return s.findFirst(ctx)
}

// openOwn opens a file of this user's to be written. A file of another user at that path is removed: the API server,
// which may run as another user, makes its log in the same directory.
func openOwn(path string) (*os.File, error) {
	for range 2 {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err != nil && !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.EISDIR) {
			return nil, err
		}
		if err == nil {
			info, err := file.Stat()
			if err == nil && info.Mode().IsRegular() && ours(info) {
				return file, nil
			}
			_ = file.Close() // nothing was written
		}
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s is another user's file again and again: see who writes to %s", path, filepath.Dir(path))
}

// ours reports whether a file is this user's, and has no other name.
func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid()) && stat.Nlink == 1
}

// wholeLines returns the size of a file up to the end of its last whole line.
func wholeLines(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, bufferSize)
	for end := info.Size(); end > 0; {
		begin := max(0, end-int64(len(block)))
		n, err := file.ReadAt(block[:end-begin], begin)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			return begin + int64(i) + 1, nil
		}
		end = begin
	}
	return 0, nil
}

// append writes whole lines. If it fails, the file is as it was, or has half a line that the next open cuts off.
func (s *store) append(ctx context.Context, lines []byte) error {
	if s.size > 0 && s.size+int64(len(lines)) > s.limit {
		if err := s.rotate(ctx); err != nil {
			return err
		}
	}
	if _, err := s.file.Write(lines); err != nil {
		return fmt.Errorf("writing the log of security: %w", err)
	}
	s.size += int64(len(lines))
	if s.first.IsZero() {
		return s.findFirst(ctx)
	}
	return nil
}

// rotate makes the file an older part, and removes the oldest one if there are too many.
func (s *store) rotate(ctx context.Context) error {
	number := 0
	if len(s.older) > 0 {
		number = s.number(s.older[len(s.older)-1])
	}
	s.close()
	if err := os.Rename(s.path, fmt.Sprintf("%s-%08d.log", strings.TrimSuffix(s.path, ".log"), number+1)); err != nil {
		return fmt.Errorf("rotating the log of security: %w", err)
	}
	names, err := older(s.path)
	if err != nil {
		return err
	}
	for len(names) > s.keep {
		if err := os.Remove(names[0]); err != nil {
			return fmt.Errorf("removing the oldest part of the log of security: %w", err)
		}
		names = names[1:]
	}
	return s.open(ctx)
}

// number of an older part.
func (s *store) number(path string) int {
	text := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), ".log"), strings.TrimSuffix(filepath.Base(s.path), ".log")+"-")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0 // it is not one of ours
	}
	return n
}

// last is the event that was written last, and false if there is none: then the log is empty, or its last line is a
// gap's, after which reading begins with what there is.
func (s *store) last(ctx context.Context) (event, bool, error) {
	path := s.path
	if s.size == 0 && len(s.older) > 0 {
		path = s.older[len(s.older)-1]
	}
	var last []byte
	err := eachLine(ctx, path, func(line []byte) error {
		last = append(last[:0], line...)
		return nil
	})
	if err != nil {
		return event{}, false, err
	}
	e, ok := decode(last)
	return e, ok, nil
}

var errEnough = errors.New("enough")

// findFirst finds when the first line was written that is left.
func (s *store) findFirst(ctx context.Context) error {
	s.first = time.Time{}
	path := s.path
	if len(s.older) > 0 {
		path = s.older[0]
	}
	err := eachLine(ctx, path, func(line []byte) error {
		var stamp struct {
			Reached time.Time `json:"stageTimestamp"`
		}
		if err := json.Unmarshal(line, &stamp); err != nil || stamp.Reached.IsZero() {
			return nil //nolint:nilerr // it is not a line of this package; the next one is
		}
		s.first = stamp.Reached
		return errEnough
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// findGap finds the end of the last gap that is in the log.
func (s *store) findGap(ctx context.Context) error {
	for _, path := range append(append([]string(nil), s.older...), s.path) {
		err := eachLine(ctx, path, func(line []byte) error {
			var g gap
			if bytes.HasPrefix(line, gapBegin) && json.Unmarshal(line, &g) == nil {
				s.gapEnd = g.Reached
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func eachLine(ctx context.Context, path string, yield func([]byte) error) error {
	r, err := openReader(path)
	if err != nil {
		return err
	}
	defer r.close()
	return r.drain(ctx, yield)
}

// gap writes a line that says that lines are missing.
func (s *store) gap(ctx context.Context, since, until time.Time) error {
	line, err := json.Marshal(gap{
		Kind: "Gap", APIVersion: "muster.dev/v1alpha1", Since: since.UTC(), Reached: until.UTC(),
		Message: "lines between these moments may be missing: the API server removed parts of its own log that had not been read",
	})
	if err != nil {
		return fmt.Errorf("encoding a gap of the log of security: %w", err)
	}
	if err := s.append(ctx, append(line, '\n')); err != nil {
		return err
	}
	s.gapEnd = until.UTC()
	return nil
}

// state says since when the log is whole.
func (s *store) state() State {
	state := State{Whole: s.first}
	if s.gapEnd.After(s.first) {
		state.Whole, state.Lost = s.gapEnd, true
	}
	if len(s.older) > 0 && s.number(s.older[0]) > 1 {
		state.Lost = true
	}
	return state
}

func (s *store) close() {
	if s.file != nil {
		_ = s.file.Close() // each line was written in one call
		s.file = nil
	}
}
