// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"muster.dev/muster/internal/plane/logevent"
)

const (
	bufferSize = 64 << 10
	// longestLine is how many bytes of a line are read to find its end.
	longestLine = 16 << 20
)

// lines yields the lines of a file that follow an offset, and returns the offset after the last one. It stops when it has
// read budget bytes, or a little more. A line without its end is yielded if the file does not grow any more, and waits for
// the next time if it does. Of a line that is longer than logevent.MaxText its beginning is yielded, and cut is true. The
// line is good until yield returns. A line that is longer than longestLine ends there, and what follows counts as another
// one: a line that never ends would be read from its beginning again and again.
func lines(in io.ReaderAt, from, budget int64, growing bool, yield func(offset int64, line []byte, cut bool) error) (to int64, err error) {
	reader := bufio.NewReaderSize(io.NewSectionReader(in, from, 1<<62), bufferSize)
	var line []byte
	begin, at := from, from
	for {
		piece, err := reader.ReadSlice('\n')
		at += int64(len(piece))
		if room := logevent.MaxText - len(line); len(line) <= logevent.MaxText {
			line = append(line, piece[:min(len(piece), room+1)]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && at-begin < longestLine:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (growing || at == begin):
			return begin, nil
		case err != nil && !errors.Is(err, io.EOF):
			return begin, fmt.Errorf("reading a log: %w", err)
		}
		text, cut := line, false
		if n := len(text); n > 0 && text[n-1] == '\n' && at-begin == int64(n) {
			text = text[:n-1]
		}
		if len(text) > logevent.MaxText {
			text, cut = text[:logevent.MaxText], true
		}
		if err := yield(begin, text, cut); err != nil {
			return begin, err
		}
		begin, line = at, line[:0]
		if begin-from >= budget {
			return begin, nil
		}
	}
}
