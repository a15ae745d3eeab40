// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"io"
)

// WaitProgress shows what a command waits for: on a terminal in one line that changes, elsewhere in a line for each change.
type WaitProgress struct {
	Out  io.Writer
	Live bool
	last string
}

// Show replaces the text. A failure to show it is not a reason to stop.
func (p *WaitProgress) Show(text string) {
	switch {
	case text == p.last:
	case p.Live:
		_, _ = fmt.Fprintf(p.Out, "\r\x1b[K%s", text)
	default:
		_, _ = fmt.Fprintln(p.Out, text)
	}
	p.last = text
}

// End leaves the last text standing.
func (p *WaitProgress) End() {
	if p.Live && p.last != "" {
		_, _ = fmt.Fprintln(p.Out)
	}
	p.last = ""
}
