// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// All lines, as a value of [Config.Tail].
const All = -1

// pollInterval is how often a followed log is looked at: often enough to look live, and nothing next to what a kubelet
// does.
const pollInterval = 200 * time.Millisecond

// Config says which lines of which logs are wanted.
type Config struct {
	Sources []Source
	// Since leaves out lines from before it.
	Since time.Time
	// Tail is the number of lines from the end, of all sources together; [All] for all of them.
	Tail int
	// TailBytes is how much of each file is read at most to find the Tail; 0 for as much as it takes. A line that begins
	// before that is cut off.
	TailBytes int64
	// Follow goes on with new lines until the context ends.
	Follow bool
	// Interval between looks at a followed log; 200 ms if zero.
	Interval time.Duration
}

// Copy writes lines of logs to out, in the order of their times, each with the name of its source before it if there
// are several.
func Copy(ctx context.Context, out io.Writer, cfg Config) error {
	if cfg.Interval == 0 {
		cfg.Interval = pollInterval
	}
	p := &printer{out: bufio.NewWriterSize(out, block), since: cfg.Since}
	if len(cfg.Sources) > 1 {
		for _, s := range cfg.Sources {
			p.width = max(p.width, len(s.Name))
		}
	}
	readers := make([]*reader, 0, len(cfg.Sources))
	defer func() {
		for _, r := range readers {
			r.close()
		}
	}()
	for _, source := range cfg.Sources {
		r, err := newReader(source, cfg)
		if err != nil {
			return err
		}
		readers = append(readers, r)
	}
	if err := merge(ctx, p, readers, cfg.Tail); err != nil {
		return err
	}
	if !cfg.Follow {
		return p.flush()
	}
	return follow(ctx, p, readers, cfg.Interval)
}

// merge prints what is in the files now.
func merge(ctx context.Context, p *printer, readers []*reader, tail int) error {
	heads := make([]*line, len(readers))
	advance := func(i int) error {
		for {
			l, err := readers[i].read()
			if errors.Is(err, io.EOF) {
				heads[i] = nil
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", readers[i].source.Path, err)
			}
			if !l.at.Before(p.since) {
				heads[i] = &l
				return nil
			}
		}
	}
	for i := range readers {
		if err := advance(i); err != nil {
			return err
		}
	}
	last := newRing(tail, len(readers))
	for ctx.Err() == nil {
		first := -1
		for i, head := range heads {
			if head != nil && (first < 0 || head.at.Before(heads[first].at)) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		text := p.format(readers[first].source.Name, heads[first].text)
		if last == nil {
			p.write(text)
		} else {
			last.add(text)
		}
		if err := advance(first); err != nil {
			return err
		}
	}
	last.each(p.write)
	return p.err
}

// printer writes lines with their prefix. Its first error ends the copying.
type printer struct {
	out   *bufio.Writer
	since time.Time
	width int // of the prefix; 0 for none
	buf   []byte
	err   error
}

// format is a line as it is printed; good until the next call.
func (p *printer) format(name string, text []byte) []byte {
	p.buf = p.buf[:0]
	if p.width > 0 {
		p.buf = append(p.buf, name...)
		p.buf = append(p.buf, strings.Repeat(" ", p.width-len(name))...)
		p.buf = append(p.buf, " | "...)
	}
	p.buf = append(p.buf, text...)
	p.buf = append(p.buf, '\n')
	return p.buf
}

func (p *printer) write(text []byte) {
	if p.err == nil {
		_, p.err = p.out.Write(text)
	}
}

func (p *printer) flush() error {
	if p.err == nil {
		p.err = p.out.Flush()
	}
	if p.err != nil {
		return fmt.Errorf("writing log: %w", p.err)
	}
	return nil
}

// ring keeps the last lines. Nil keeps none.
type ring struct {
	lines [][]byte
	limit int
	start int
}

// newRing is nil where every line is wanted, or where the one reader has found the last lines already.
func newRing(limit, readers int) *ring {
	if limit < 0 || readers < 2 {
		return nil
	}
	return &ring{limit: limit}
}

func (r *ring) add(text []byte) {
	switch {
	case r.limit == 0:
	case len(r.lines) < r.limit:
		r.lines = append(r.lines, bytes.Clone(text))
	default:
		r.lines[r.start] = append(r.lines[r.start][:0], text...)
		r.start = (r.start + 1) % r.limit
	}
}

func (r *ring) each(do func([]byte)) {
	if r == nil {
		return
	}
	for i := range r.lines {
		do(r.lines[(r.start+i)%len(r.lines)])
	}
}
