// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"

	"muster.dev/muster/internal/platform/termsafe"
)

// Row is one of LiveRows: a sign of one column, if any, and a text.
type Row struct {
	Sign  string
	Color int // of the sign, as ANSI numbers colours; 0 is the terminal's own
	Text  string
}

// LiveRows are rows at the end of a terminal that change in place. Each takes one line, whatever the width of the
// terminal: what does not fit is cut off. They follow a terminal that is resized when they are drawn next.
//
// What happens if the terminal gets narrower: most terminals break the lines that are too long by then into several,
// and the rows that were drawn take more lines than there were rows. The cursor goes up by as many as it takes. xterm
// and the kernel's console hide what does not fit instead: there a few lines above the rows are lost, and nothing of
// the rows is left over.
type LiveRows struct {
	out   io.Writer
	color bool
	drawn []string // the rows on the terminal, without colour
	text  string   // the text that was written for the rows
}

// NewLiveRows makes rows on a terminal. They are in colour unless NO_COLOR is set (https://no-color.org).
func NewLiveRows(out io.Writer) *LiveRows {
	return &LiveRows{out: out, color: os.Getenv("NO_COLOR") == ""}
}

// NewMovingRows is NewLiveRows where rows may change in place, and nil elsewhere: in pipes, files and CI, whose logs
// keep every change.
func NewMovingRows(out io.Writer) *LiveRows {
	if !moving(out) {
		return nil
	}
	return NewLiveRows(out)
}

// Draw replaces the rows. They are written at once, so that nobody sees half of them, and only if something changed.
func (l *LiveRows) Draw(rows []Row) {
	columns, lines := terminalSize(l.out)
	rows = fitting(rows, max(lines-1, 1)) // the cursor has the last line
	var b strings.Builder
	drawn := make([]string, len(rows))
	for i, row := range rows {
		drawn[i] = row.plain(columns - 1) // a line that is full makes some terminals begin the next
		b.WriteString(l.paint(row, drawn[i]) + "\n")
	}
	if b.String() == l.text { // which fits the present width
		return
	}
	erase := "" // all lines that the rows take
	if height := l.height(columns); height > 0 {
		erase = fmt.Sprintf("\r\x1b[%dA\x1b[J", height)
	}
	l.drawn, l.text = drawn, b.String()
	_, _ = io.WriteString(l.out, erase+l.text)
}

// Leave leaves the rows as they are: the next ones are drawn below them.
func (l *LiveRows) Leave() { l.drawn, l.text = nil, "" }

// height is the number of lines that the rows take on the terminal in its present width.
func (l *LiveRows) height(columns int) int {
	lines := 0
	for _, row := range l.drawn {
		lines += termsafe.Height(row, columns)
	}
	return lines
}

// paint gives the sign of a row its colour, if the row has one.
func (l *LiveRows) paint(row Row, plain string) string {
	rest, whole := strings.CutPrefix(plain, row.Sign)
	if !l.color || !whole || row.Color == 0 {
		return plain
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m%s", row.Color, row.Sign, rest)
}

// fitting are as many rows as a terminal has lines for: the cursor cannot go up to those that were scrolled off.
func fitting(rows []Row, lines int) []Row {
	if len(rows) <= lines {
		return rows
	}
	return append(rows[:lines-1:lines-1], Row{Text: fmt.Sprintf("… and %d more", len(rows)-(lines-1))})
}

// plain is a row cut to so many columns.
func (r Row) plain(columns int) string {
	text := oneLine(r.Text)
	if r.Sign != "" {
		text = r.Sign + " " + text
	}
	return termsafe.Cut(text, columns)
}

// oneLine is a text without what a terminal acts on; several lines, as of several errors, become one.
func oneLine(text string) string {
	return termsafe.Line(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "; "))
}
