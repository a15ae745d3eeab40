// SPDX-License-Identifier: Apache-2.0

// Package regexpsize measures regular expressions before they are compiled: a text of a few characters, such as (a?){1000}, can be a
// program of thousands of instructions. A match takes a time of at most the instructions times the bytes of the text, and cannot be
// interrupted, so expressions of strangers need a bound.
package regexpsize

import (
	"fmt"
	"regexp/syntax"
)

// Of is about how many instructions the program of a regular expression has. The error is that of regexp.Compile.
func Of(expression string) (int, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("reading a regular expression: %w", err)
	}
	return size(parsed), nil
}

func size(e *syntax.Regexp) int {
	n := 1
	if e.Op == syntax.OpLiteral {
		n = len(e.Rune)
	}
	for _, sub := range e.Sub {
		n += size(sub)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Max, e.Min+1) // a repetition without end has a Max of -1
	}
	return n
}
