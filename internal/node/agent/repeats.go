// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// repeatInterval is how often a line that says the same is written.
	repeatInterval = 30 * time.Second
	// repeatKinds is how many different lines are remembered.
	repeatKinds = 64
	// longestLine bounds a line in bytes; a longer one is written in pieces.
	longestLine = 64 << 10
)

// repeats leaves out what a program says again and again: of lines that differ in the header of klog alone, one in an
// interval is written, with how many were left out. A kubelet whose Node is not registered writes "Unable to register
// mirror pod because node is not registered yet" ten times a second, as an error and whether or not there are static
// pods (pkg/kubelet/kubelet.go, fastStaticPodsRegistration): no flag of the kubelet's turns that off, and all else it
// says is lost among it.
type repeats struct {
	out io.Writer
	now func() time.Time
	// heard is told of every line, also of those that are left out. May be nil.
	heard func(line []byte)

	said map[string]*repeat
}

// repeat is a line that was written, and how often it has been left out since.
type repeat struct {
	at   time.Time
	more int
}

// copyLines copies lines until the program has closed its end.
func (r *repeats) copyLines(from io.Reader) error {
	lines := bufio.NewReaderSize(from, longestLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 && r.heard != nil {
			r.heard(line)
		}
		if len(line) > 0 {
			if _, err := r.out.Write(r.written(line)); err != nil {
				return fmt.Errorf("writing log: %w", err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("reading output: %w", err)
		}
	}
}

// written is what is written of a line: nothing, the line, or the line after a word on those that were left out.
func (r *repeats) written(line []byte) []byte {
	header := klogHeader.Find(line)
	if header == nil {
		return line
	}
	text, now := string(line[len(header):]), r.now()
	before, again := r.said[text]
	switch {
	case again && now.Sub(before.at) < repeatInterval:
		before.more++
		return nil
	case !again && len(r.said) >= repeatKinds:
		clear(r.said) // at worst a line is written once more
	}
	r.said[text] = &repeat{at: now}
	if again && before.more > 0 {
		return fmt.Appendf(nil, "%s(%d lines like the next one were left out)\n%s", header, before.more, line)
	}
	return line
}
