// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
)

// WaitProgress shows what a command waits for: on a terminal in one line that changes, elsewhere in a line for each
// change.
type WaitProgress struct {
	out  io.Writer
	rows *LiveRows // nil where nothing moves
	last string
}

// NewWaitProgress makes one that has shown nothing yet.
func NewWaitProgress(out io.Writer) *WaitProgress {
	return &WaitProgress{out: out, rows: NewMovingRows(out)}
}

// Show replaces the text. A failure to show it is not a reason to stop.
func (p *WaitProgress) Show(text string) {
	switch {
	case p.rows != nil:
		p.rows.Draw([]Row{{Text: text}}) // also the same text: the terminal may have another width by now
	case text != p.last:
		_, _ = fmt.Fprintln(p.out, oneLine(text))
	}
	p.last = text
}

// End leaves the last text standing.
func (p *WaitProgress) End() {
	if p.rows != nil {
		p.rows.Leave()
	}
	p.last = ""
}
