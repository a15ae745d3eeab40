// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	block = 64 << 10
	// maxLine is where a longer line is broken.
	maxLine = 1 << 20
)

// Source is one log: a file, and the older parts that were rotated away from it.
type Source struct {
	// Name goes before every line when there are several sources.
	Name string
	// Path of the file that is written now. It need not exist.
	Path string
	// Older parts, oldest first. They need not exist.
	Older []string
	// Root, if set, is a directory that the writer of the logs must not lead out of by links: a machine's disk.
	Root string
	// Location is the time zone of stamps that have none. Required.
	Location *time.Location
}

// line is one line of a log and the time it belongs to. The text has no newline at its end and is good until the next read.
type line struct {
	at   time.Time
	text []byte
}

// reader yields the lines of a source up to its end.
type reader struct {
	source Source
	older  []*os.File // still to be read, or being read
	last   *os.File   // the file at Path, read after them; nil if there is none
	lines  *bufio.Reader
	begun  bool // the first of older is being read
	inLast bool
	// offset in the last file up to which lines have been yielded.
	offset int64
	ref    time.Time // when the file being read was last written
	at     time.Time // of the last line
	keep   bool      // leave a last line without newline where it is: it is still being written
	buf    []byte
}

// newReader opens the files of a source. With a tail it starts that many lines before the end.
func newReader(source Source, cfg Config) (*reader, error) {
	r := &reader{source: source, keep: cfg.Follow}
	for _, path := range source.Older {
		file, err := source.open(path)
		if err != nil {
			r.close()
			return nil, err
		}
		if file != nil {
			r.older = append(r.older, file)
		}
	}
	var err error
	if r.last, err = source.open(source.Path); err != nil {
		r.close()
		return nil, err
	}
	if cfg.Tail >= 0 {
		if err := r.seekTail(cfg.Tail, cmp.Or(cfg.TailBytes, math.MaxInt64)); err != nil {
			r.close()
			return nil, err
		}
	}
	if err := r.next(); err != nil && !errors.Is(err, io.EOF) {
		r.close()
		return nil, err
	}
	return r, nil
}

// open opens a file of a log; nil if there is none.
func (s Source) open(path string) (*os.File, error) {
	// A path that is not a file, but a pipe, must not hold the reader.
	const how = os.O_RDONLY | unix.O_NONBLOCK
	var file *os.File
	err := s.below(path, func(root *os.Root, name string) (err error) {
		file, err = root.OpenFile(name, how, 0)
		return err
	}, func() (err error) {
		file, err = os.OpenFile(path, how, 0)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, fmt.Errorf("opening log %s: it is not a regular file", path)
	}
	return file, nil
}

// stat looks at a file of a log.
func (s Source) stat(path string) (info fs.FileInfo, err error) {
	err = s.below(path, func(root *os.Root, name string) (err error) {
		info, err = root.Stat(name)
		return err
	}, func() (err error) {
		info, err = os.Stat(path)
		return err
	})
	return info, err
}

// below calls inside for a path below the root if there is a root, and else plain.
func (s Source) below(path string, inside func(*os.Root, string) error, plain func() error) error {
	if s.Root == "" {
		return plain()
	}
	name, err := filepath.Rel(s.Root, path)
	if err != nil {
		return fmt.Errorf("finding log %s below %s: %w", path, s.Root, err)
	}
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return fmt.Errorf("opening the directory of logs: %w", err)
	}
	defer func() { _ = root.Close() }()
	return inside(root, name)
}

func (r *reader) close() {
	for _, file := range r.older {
		_ = file.Close()
	}
	if r.last != nil {
		_ = r.last.Close()
	}
}

// seekTail moves the files to where the last count lines of the source begin, and drops parts from before. It reads at
// most so many bytes of a file.
func (r *reader) seekTail(count int, most int64) error {
	if r.last != nil {
		found, offset, err := tail(r.last, count, most)
		if err != nil {
			return err
		}
		r.offset = offset
		count -= found
	}
	for i, part := range slices.Backward(r.older) {
		if count == 0 {
			for _, file := range r.older[:i+1] {
				_ = file.Close()
			}
			r.older = r.older[i+1:]
			break
		}
		found, _, err := tail(part, count, most)
		if err != nil {
			return err
		}
		count -= found
	}
	return nil
}

// tail sets the file's position to where its last count lines begin, reading it backwards, and says how many there are.
// Where they begin before the last bytes that may be read, it is set there, and says that they are all.
func tail(file *os.File, count int, most int64) (found int, offset int64, err error) {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, 0, fmt.Errorf("seeking in log: %w", err)
	}
	position, first := end, max(0, end-most)
	buf := make([]byte, block)
	for position > first && offset == 0 && count > 0 {
		size := min(int64(block), position-first)
		position -= size
		if _, err := file.ReadAt(buf[:size], position); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, fmt.Errorf("reading log: %w", err)
		}
		chunk := buf[:size]
		for i := bytes.LastIndexByte(chunk, '\n'); i >= 0; i = bytes.LastIndexByte(chunk[:i], '\n') {
			if position+int64(i) == end-1 { // the newline that ends the last line
				continue
			}
			if found++; found == count {
				offset = position + int64(i) + 1
				break
			}
		}
	}
	switch {
	case count == 0:
		offset = end
	case offset == 0 && first > 0:
		found, offset = count, first
	case offset == 0 && end > 0:
		found++ // the first line has no newline before it
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return 0, 0, fmt.Errorf("seeking in log: %w", err)
	}
	return found, offset, nil
}

// next goes on to the next file, and answers [io.EOF] if there is none.
func (r *reader) next() error {
	if r.begun {
		_ = r.older[0].Close()
		r.older, r.begun = r.older[1:], false
	}
	var file *os.File
	switch {
	case len(r.older) > 0:
		file, r.begun = r.older[0], true
	case r.last != nil && !r.inLast:
		file, r.inLast = r.last, true
	default:
		r.lines = nil
		return io.EOF
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("looking at log: %w", err)
	}
	r.ref = info.ModTime().In(r.source.Location)
	r.lines = bufio.NewReaderSize(file, block)
	if r.at.IsZero() {
		r.at = r.firstTime(file)
	}
	return nil
}

// firstTime is what lines without a time at the start belong to: the last time before them if reading begins in the
// middle of a file, else the first after them, else when the file was last written.
func (r *reader) firstTime(file *os.File) time.Time {
	at := r.ref
	if offset, err := file.Seek(0, io.SeekCurrent); err == nil && offset > 0 {
		before := make([]byte, min(offset, block))
		n, _ := file.ReadAt(before, offset-int64(len(before)))
		found := false
		for text := range bytes.Lines(before[:n]) {
			if t, ok := Stamp(trimNewline(text), r.ref); ok {
				at, found = t, true
			}
		}
		if found {
			return at
		}
	}
	start, _ := r.lines.Peek(block)
	for text := range bytes.Lines(start) {
		if t, ok := Stamp(trimNewline(text), r.ref); ok {
			return t
		}
	}
	return at
}

// read yields the next line, and [io.EOF] at the end.
func (r *reader) read() (line, error) {
	for {
		if r.lines == nil {
			return line{}, io.EOF
		}
		text, size, err := readLine(r.lines, r.buf[:0])
		r.buf = text
		atEnd := errors.Is(err, io.EOF)
		if err != nil && !atEnd {
			return line{}, fmt.Errorf("reading log: %w", err)
		}
		partial := atEnd && size > 0
		if size > 0 && (!partial || !r.inLast || !r.keep) {
			if r.inLast {
				r.offset += int64(size)
			}
			if t, ok := Stamp(text, r.ref); ok {
				r.at = t
			}
			return line{at: r.at, text: text}, nil
		}
		if err := r.next(); err != nil {
			return line{}, err
		}
	}
}

// readLine appends the next line to buf, without its newline, and says how many bytes it took from the file. A line
// longer than maxLine is yielded in pieces. [io.EOF] comes along with the last line if that has no newline.
func readLine(from *bufio.Reader, buf []byte) (text []byte, size int, err error) {
	for {
		piece, err := from.ReadSlice('\n')
		buf = append(buf, piece...)
		size += len(piece)
		if errors.Is(err, bufio.ErrBufferFull) && len(buf) < maxLine {
			continue
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		return trimNewline(buf), size, err
	}
}

func trimNewline(text []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\r'})
}
