// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

const (
	// burst is how much of one log is read before the others have their turn.
	burst = 1 << 20
	// markSize is how much of what came before the current position is compared, to notice that a file was cut and has
	// grown again.
	markSize = 64
)

// follower reads what is added to a log. Logs are rotated in two ways: the file is copied aside and cut to nothing (the
// supervisor), or renamed and made anew; both lose no line here that is still in the older part.
type follower struct {
	*reader
	mark    []byte // the bytes before offset
	partial []byte // the start of a line that is still being written
	found   []foundLine
}

type foundLine struct {
	at   time.Time
	name string
	text []byte
}

// follow prints new lines until the context ends.
func follow(ctx context.Context, p *printer, readers []*reader, interval time.Duration) error {
	followers := make([]*follower, len(readers))
	for i, r := range readers {
		followers[i] = &follower{reader: r}
		if r.last != nil {
			followers[i].mark = before(r.last, r.offset)
		}
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		more := false
		var lines []foundLine
		for _, f := range followers {
			again, err := f.poll()
			if err != nil {
				return fmt.Errorf("%s: %w", f.source.Path, err)
			}
			more = more || again
			lines = append(lines, f.found...)
			f.found = nil
		}
		slices.SortStableFunc(lines, func(a, b foundLine) int { return a.at.Compare(b.at) })
		for _, l := range lines {
			if !l.at.Before(p.since) {
				p.write(p.format(l.name, l.text))
			}
		}
		if err := p.flush(); err != nil {
			return err
		}
		if more && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// poll reads what is new, and reports whether there is more of it.
func (f *follower) poll() (more bool, err error) {
	info, err := f.source.stat(f.source.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if f.last == nil {
			return false, nil
		}
		return f.drain(f.last)
	case err != nil:
		return false, err
	}
	if f.last != nil {
		held, err := f.last.Stat()
		if err != nil {
			return false, err
		}
		f.ref = held.ModTime().In(f.source.Location)
		switch {
		case !os.SameFile(info, held): // renamed and made anew
			if more, err := f.drain(f.last); more || err != nil {
				return more, err
			}
			_ = f.last.Close()
			f.last = nil
			f.restart()
		case held.Size() < f.offset || !bytes.Equal(before(f.last, f.offset), f.mark): // cut to nothing, and perhaps grown again
			if err := f.rescue(); err != nil {
				return false, err
			}
			f.restart()
		}
	}
	if f.last == nil {
		if f.last, err = f.source.open(f.source.Path); err != nil || f.last == nil {
			return false, err
		}
		f.ref = info.ModTime().In(f.source.Location)
	}
	return f.drain(f.last)
}

// rescue reads what had been added to a log before it was cut, from the part that it was copied to.
func (f *follower) rescue() error {
	if len(f.source.Older) == 0 {
		return nil
	}
	old, err := f.source.open(f.source.Older[len(f.source.Older)-1])
	if err != nil || old == nil {
		return err
	}
	defer func() { _ = old.Close() }()
	if !bytes.Equal(before(old, f.offset), f.mark) {
		return nil // not a copy of what was read
	}
	for {
		if more, err := f.drain(old); !more || err != nil {
			return err
		}
	}
}

// restart goes on at the start of a new file.
func (f *follower) restart() {
	if len(f.partial) > 0 {
		f.emit(f.partial)
	}
	f.offset, f.mark, f.partial = 0, nil, nil
}

// drain reads from the current position up to the end of the file, or a burst of it.
func (f *follower) drain(file *os.File) (more bool, err error) {
	start := f.offset
	buf := make([]byte, block)
	for f.offset-start < burst {
		n, err := file.ReadAt(buf, f.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("reading log: %w", err)
		}
		f.offset += int64(n)
		f.mark = append(f.mark, buf[:n]...)
		f.mark = f.mark[max(0, len(f.mark)-markSize):]
		f.split(buf[:n])
		if n < len(buf) {
			return false, nil
		}
	}
	return true, nil
}

// split makes lines of what was read.
func (f *follower) split(data []byte) {
	for part := range bytes.Lines(data) {
		f.partial = append(f.partial, part...)
		if part[len(part)-1] == '\n' || len(f.partial) >= maxLine {
			f.emit(f.partial)
			f.partial = f.partial[:0]
		}
	}
}

func (f *follower) emit(text []byte) {
	text = trimNewline(text)
	if t, ok := Stamp(text, f.ref); ok {
		f.at = t
	}
	if f.at.IsZero() {
		f.at = f.ref
	}
	f.found = append(f.found, foundLine{at: f.at, name: f.source.Name, text: slices.Clone(text)})
}

// before is what stands before an offset of a file.
func before(file *os.File, offset int64) []byte {
	buf := make([]byte, min(offset, markSize))
	n, _ := file.ReadAt(buf, offset-int64(len(buf)))
	return buf[:n]
}
