// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	bufferSize = 256 << 10
	// maxLine is as much as a part of the API server's log has (--audit-log-maxsize): it writes no longer line.
	maxLine = 64 << 20
)

// reader yields the lines of a file that grows.
type reader struct {
	file   *os.File
	offset int64 // of the first line that was not yielded
	buffer []byte
}

func openReader(path string) (*reader, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // the API server may have put anything there
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return &reader{file: file, buffer: make([]byte, bufferSize)}, nil
}

// drain yields the whole lines that there are. A line without its end stays for the next time. The line is good until
// yield returns.
func (r *reader) drain(ctx context.Context, yield func(line []byte) error) error {
	held := 0 // bytes at the beginning of the buffer, without a newline
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.file.ReadAt(r.buffer[held:], r.offset+int64(held))
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		data, searched := r.buffer[:held+n], held
		for {
			end := bytes.IndexByte(data[searched:], '\n')
			if end < 0 {
				break
			}
			if err := yield(data[:searched+end]); err != nil {
				return err
			}
			r.offset += int64(searched+end) + 1
			data, searched = data[searched+end+1:], 0
		}
		held = copy(r.buffer, data)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case held == len(r.buffer) && held >= maxLine:
			r.offset, held = r.offset+int64(held), 0 // its rest cannot be decoded, and is not kept
		case held == len(r.buffer):
			r.buffer = append(r.buffer, make([]byte, len(r.buffer))...)
		}
	}
}

func (r *reader) close() {
	if r != nil {
		_ = r.file.Close() // it was only read
	}
}
