// SPDX-License-Identifier: Apache-2.0

package bootreport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// File is a machine's report, as the machine writes it.
type File struct {
	mutex sync.Mutex
	file  *os.File
	last  Report
}

// Create opens the file, whose directory must exist, and empties the report of an earlier boot. It takes the space that
// any report needs.
func Create(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening boot report: %w", err)
	}
	f := &File{file: file}
	if err := f.write(nil); err != nil {
		return nil, err
	}
	return f, nil
}

// Set replaces the report. It does nothing if the report says the same.
func (f *File) Set(r Report) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	r.Message, r.Since = clean(r.Message), r.Since.UTC().Truncate(time.Second)
	if r.Reason == f.last.Reason && r.Message == f.last.Message {
		return nil
	}
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false) // so that no message outgrows the file
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("writing boot report: %w", err)
	}
	f.last = r
	return f.write(raw.Bytes())
}

// Clear removes the report if it has one of these reasons, and any report if there are none.
func (f *File) Clear(reasons ...string) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.last.Reason == "" || len(reasons) > 0 && !slices.Contains(reasons, f.last.Reason) {
		return nil
	}
	f.last = Report{}
	return f.write(nil)
}

func (f *File) write(raw []byte) error {
	block := bytes.Repeat([]byte("\n"), Size)
	copy(block, raw)
	if _, err := f.file.WriteAt(block, 0); err != nil {
		return fmt.Errorf("writing boot report: %w", err)
	}
	return nil
}

// Read reads the report on a machine's disk. Returns false unless a regular file of at most Size bytes is there and
// holds a report. It never waits and reads no more than Size bytes, whatever the machine's root put there.
func Read(disk *os.Root) (Report, bool) {
	file, err := disk.OpenFile(Path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Report{}, false
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > Size {
		return Report{}, false
	}
	raw, err := io.ReadAll(io.LimitReader(file, Size))
	if err != nil {
		return Report{}, false
	}
	var r Report
	if err := json.Unmarshal(raw, &r); err != nil || r.Reason == "" {
		return Report{}, false
	}
	if !IsReason(r.Reason) && r.Reason != Warmed {
		r.Reason = BootFailed
	}
	r.Message = clean(r.Message)
	return r, r.Message != ""
}

// clean makes one line of a message, of characters that a terminal shows, in at most MaxMessage bytes.
func clean(message string) string {
	message = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\r' || c == '\t':
			return ' '
		case c == utf8.RuneError || !unicode.IsPrint(c):
			return '?'
		}
		return c
	}, strings.TrimSpace(message))
	const more = "…"
	if len(message) > MaxMessage {
		cut := MaxMessage - len(more)
		for !utf8.RuneStart(message[cut]) {
			cut--
		}
		message = message[:cut] + more
	}
	return message
}
