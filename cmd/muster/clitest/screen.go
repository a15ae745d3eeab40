// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster.dev/muster/internal/platform/termsafe"
)

// Screen is what a terminal shows of the bytes that are written to it, with what was scrolled off. It knows no more
// than programs of this repository write: anything else is a problem.
type Screen struct {
	// Reflows is true of a terminal that breaks lines anew when its width changes, as most do. xterm does not: it hides
	// what is too long.
	Reflows bool
	// Problems are escape sequences and characters that no program should have written.
	Problems []string

	columns, height int
	lines           []screenLine // the last ones are visible
	row, column     int
	pending         string // the begin of a sequence, or of a character
}

// screenLine is one line; each cell is a letter with its marks, and the second cell of a wide letter is empty.
type screenLine struct {
	cells  []string
	broken bool // it goes on in the next line
}

// NewScreen makes an empty screen.
func NewScreen(columns, height int) *Screen {
	return &Screen{columns: columns, height: height, lines: make([]screenLine, 1)}
}

// Lines are the lines of the screen and those that were scrolled off, without blanks at their ends, up to the cursor's.
func (s *Screen) Lines() []string {
	all := make([]string, 0, len(s.lines))
	for _, line := range s.lines {
		all = append(all, strings.TrimRight(strings.Join(line.cells, ""), " "))
	}
	for len(all) > s.row+1 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// Write implements [io.Writer].
func (s *Screen) Write(data []byte) (int, error) {
	text := s.pending + string(data)
	s.pending = ""
	for text != "" {
		if text[0] == '\x1b' {
			end := strings.IndexFunc(text[1:], func(r rune) bool { return r != '[' && r >= 0x40 && r <= 0x7e })
			if end < 0 {
				s.pending = text
				break
			}
			s.escape(text[1 : 1+end+1])
			text = text[1+end+1:]
			continue
		}
		if !utf8.FullRuneInString(text) {
			s.pending = text
			break
		}
		r, size := utf8.DecodeRuneInString(text)
		s.put(r)
		text = text[size:]
	}
	return len(data), nil
}

// escape carries out a sequence, given without its first character.
func (s *Screen) escape(sequence string) {
	number := 1
	if n, err := strconv.Atoi(strings.Trim(sequence, "[ABCDJKm")); err == nil {
		number = n
	}
	switch {
	case !strings.HasPrefix(sequence, "["):
		s.problem("the sequence %q", sequence)
	case strings.HasSuffix(sequence, "m"): // colours
	case strings.HasSuffix(sequence, "A"):
		s.row = max(s.row-number, s.top())
	case sequence == "[J":
		s.lines = s.lines[:s.row+1]
		s.erase()
	case sequence == "[K":
		s.erase()
	default:
		s.problem("the sequence %q", sequence)
	}
}

// erase clears the rest of the cursor's line.
func (s *Screen) erase() {
	line := &s.lines[s.row]
	line.cells, line.broken = line.cells[:min(len(line.cells), s.column)], false
}

// put shows a character at the cursor.
func (s *Screen) put(r rune) {
	width := termsafe.Width(string(r))
	switch {
	case r == '\r':
		s.column = 0
		return
	case r == '\n':
		s.down()
		return
	case r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError:
		s.problem("the character %q", r)
		return
	case width == 0:
		if at := s.column - 1; at >= 0 && at < len(s.lines[s.row].cells) {
			s.lines[s.row].cells[at] += string(r)
		}
		return
	case s.column+width > s.columns:
		s.lines[s.row].broken = true
		s.down()
		s.column = 0
	}
	line := &s.lines[s.row]
	for len(line.cells) < s.column+width {
		line.cells = append(line.cells, " ")
	}
	line.cells[s.column] = string(r)
	if width == 2 {
		line.cells[s.column+1] = ""
	}
	s.column += width
}

// down moves the cursor to the next line.
func (s *Screen) down() {
	if s.row++; s.row == len(s.lines) {
		s.lines = append(s.lines, screenLine{})
	}
}

// top is the first line that is visible: the cursor does not go above it.
func (s *Screen) top() int { return max(len(s.lines)-s.height, 0) }

// Resize gives the screen another size.
func (s *Screen) Resize(columns, height int) {
	s.columns, s.height = columns, height
	if !s.Reflows {
		for i := range s.lines {
			s.lines[i].cells = s.lines[i].cells[:min(len(s.lines[i].cells), columns)]
		}
		s.column = min(s.column, columns-1)
		return
	}
	again := &Screen{columns: columns, height: height, lines: make([]screenLine, 1)}
	row, column := 0, 0
	for i, line := range s.lines {
		for at, cell := range line.cells {
			if i == s.row && at == s.column {
				row, column = again.row, again.column
			}
			for _, r := range cell {
				again.put(r)
			}
		}
		if i == s.row && s.column >= len(line.cells) {
			row, column = again.row, again.column
		}
		if !line.broken && i < len(s.lines)-1 {
			again.down()
			again.column = 0
		}
	}
	s.lines, s.row, s.column = again.lines, row, column
}

func (s *Screen) problem(format string, args ...any) {
	s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
}
