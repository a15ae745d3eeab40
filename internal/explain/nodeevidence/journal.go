// SPDX-License-Identifier: Apache-2.0

package nodeevidence

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"

	"muster.dev/muster/internal/platform/logs"
)

// Line is one line of a log.
type Line struct {
	Time time.Time
	Text string
}

// maxLines is how many lines of a unit are read, from the end.
const maxLines = 5000

// lookTime is how long systemctl and journalctl may take, each time. A journal may be damaged, or on a disk that hangs.
const lookTime = 8 * time.Second

// Journal is systemd's.
type Journal interface {
	// Lines returns the last lines of a unit since a moment, in their order; of the boot that runs if it is zero.
	Lines(ctx context.Context, unit string, since time.Time, most int) ([]Line, error)
}

// Journalctl reads the journal of this host. It is the program's path.
type Journalctl string

// Lines implements [Journal].
func (j Journalctl) Lines(ctx context.Context, unit string, since time.Time, most int) ([]Line, error) {
	args := []string{"--no-pager", "--quiet", "--output=short-unix", "--unit=" + unit, "--lines=" + strconv.Itoa(min(most, maxLines))}
	if since.IsZero() {
		args = append(args, "--boot")
	} else {
		args = append(args, "--since=@"+strconv.FormatInt(since.Unix(), 10))
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, string(j), args...)
	var out beginning
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("reading the journal of %s: %w", unit, cmp.Or(ctx.Err(), err))
	}
	return parseJournal(out), nil
}

// beginning keeps the first maxJournal bytes of what is written.
type beginning []byte

// Write implements io.Writer.
func (b *beginning) Write(data []byte) (int, error) {
	*b = append(*b, data[:min(len(data), maxJournal-len(*b))]...)
	return len(data), nil
}

// maxJournal is how much is read of what journalctl prints, in bytes.
const maxJournal = 8 << 20

// journalLine is a line of journalctl --output=short-unix: seconds, host, program, text.
var journalLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{1,12})\.([0-9]{6}) \S{1,255} [^:\[]{1,128}(?:\[[0-9]+\])?: (.*)$`)
})

// parseJournal reads what journalctl prints. A line without a time belongs to the entry above it.
func parseJournal(raw []byte) []Line {
	var lines []Line
	for text := range bytes.Lines(raw) {
		text = bytes.TrimRight(text, "\r\n")
		if match := journalLine().FindSubmatch(text); match != nil {
			seconds, _ := strconv.ParseInt(string(match[1]), 10, 64) // digits that fit
			micros, _ := strconv.ParseInt(string(match[2]), 10, 64)
			lines = append(lines, Line{time.Unix(seconds, micros*1000).UTC(), string(match[3])})
		} else if len(lines) > 0 && len(bytes.TrimSpace(text)) > 0 {
			lines = append(lines, Line{lines[len(lines)-1].Time, string(bytes.TrimSpace(text))})
		}
	}
	return lines
}

// fileLines are the lines of a log file since a moment.
func (d disk) fileLines(name string, since time.Time) ([]Line, error) {
	raw, info, err := d.end(name)
	if err != nil {
		return nil, err
	}
	var lines []Line
	var at time.Time
	for text := range bytes.Lines(raw) {
		text = bytes.TrimRight(text, "\r\n")
		if stamp, ok := logs.Stamp(text, info.ModTime()); ok { // a line without one belongs to the line above it
			at = stamp.UTC()
		}
		if !at.IsZero() && !at.Before(since) {
			lines = append(lines, Line{at, string(text)})
		}
	}
	return lines[max(0, len(lines)-maxLines):], nil
}

// afterLine is what follows the first end of a line.
func afterLine(raw []byte) []byte {
	if _, rest, ok := bytes.Cut(raw, []byte("\n")); ok {
		return rest
	}
	return nil
}
