// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Is reports whether w is a terminal, where colour and moving progress are welcome.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// moving reports whether rows may change in place on w. CI systems give programs a terminal, too, and record what is
// written to it: CI is the variable that they all set.
func moving(w io.Writer) bool {
	ci := os.Getenv("CI")
	return Is(w) && (ci == "" || ci == "false" || ci == "0")
}

// The size of a terminal that does not know its own, such as a serial line.
const (
	usualColumns = 80
	usualLines   = 24
)

// terminalSize returns the size of a terminal as it is now: people change it while a command waits.
func terminalSize(w io.Writer) (columns, lines int) {
	if f, ok := w.(*os.File); ok {
		columns, lines, _ = term.GetSize(int(f.Fd())) // zeros on an error
	}
	if columns <= 0 {
		columns = usualColumns
	}
	if lines <= 0 {
		lines = usualLines
	}
	return columns, lines
}
