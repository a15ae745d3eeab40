// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

const maxDiaryLine = 1 << 10

// diary takes what a child prints on its standard error. Vendors' libraries print there what they like, so it is logged
// at debug level only. The message of a crash of Go is remembered.
type diary struct {
	logger *slog.Logger

	mu   sync.Mutex
	line []byte
	end  string
}

func (d *diary) Write(data []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for rest := data; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		d.line = append(d.line, line[:min(len(line), maxDiaryLine-len(d.line))]...)
		if whole {
			d.put(string(d.line))
			d.line = d.line[:0]
		}
		rest = after
	}
	return len(data), nil
}

func (d *diary) put(line string) {
	for _, crash := range []string{"SIG", "fatal error: ", "panic: "} {
		if d.end == "" && strings.HasPrefix(line, crash) {
			d.end = ": " + line
		}
	}
	d.logger.Debug("the program that talks to the token says", "line", line)
}

// crash says what Go said.
func (d *diary) crash() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.end
}
