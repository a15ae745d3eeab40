// SPDX-License-Identifier: Apache-2.0

package logsinsights

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"muster.dev/muster/internal/platform/termsafe"
)

// SyntaxError is why a query cannot be read. CloudWatch Logs answers it as MalformedQueryException, whose queryCompileError has
// Message, and Start and End as startCharOffset and endCharOffset.
type SyntaxError struct {
	Message    string
	Start, End int // code points of the query, counted from 0; End is the one after the last
	Line       int // of Start, counted from 1
	Position   int // of Start in its line, counted from 1
}

// Error returns the message with line and position.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at line %d and position %d", e.Message, e.Line, e.Position)
}

// Pointed returns the line of the query that the error is about, and below it a line with a caret at the character. Characters of
// the query that cannot be seen are written out.
func (e *SyntaxError) Pointed(query string) string {
	lines := strings.Split(query, "\n")
	line := []rune(lines[min(e.Line, len(lines))-1])
	before := termsafe.Line(string(line[:min(e.Position-1, len(line))]))
	return termsafe.Line(string(line)) + "\n" + strings.Repeat(" ", termsafe.Width(before)) + "^"
}

// Span is a part of the query's text: bytes from Start up to, not including, End.
type Span struct{ Start, End int }

func errorAt(query string, at Span, format string, arguments ...any) *SyntaxError {
	start := min(at.Start, len(query))
	end := min(max(at.End, start), len(query))
	before := query[:start]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	from := utf8.RuneCountInString(before)
	return &SyntaxError{
		Message: fmt.Sprintf(format, arguments...),
		Start:   from, End: from + utf8.RuneCountInString(query[start:end]),
		Line: strings.Count(before, "\n") + 1, Position: utf8.RuneCountInString(line) + 1,
	}
}
