// SPDX-License-Identifier: Apache-2.0

package termsafe

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// ellipsis ends a text that was cut.
const ellipsis = "…"

// Width returns the number of columns that a text takes on a terminal: 2 for wide letters such as 節, 0 for marks that
// are drawn over the letter before. The text must be safe (see [Line]): an escape sequence counts as if it were
// printed.
func Width(text string) int {
	columns := 0
	for cluster := range clusters(text) {
		columns += cluster.columns
	}
	return columns
}

// Cut returns a text that takes at most so many columns. A text that takes more loses its end, and has an ellipsis
// there. Marks stay with their letters.
func Cut(text string, columns int) string {
	if len(text) <= columns || Width(text) <= columns { // no letter has more columns than bytes
		return text
	}
	if columns <= 0 {
		return ""
	}
	var kept strings.Builder
	left := columns - 1
	for cluster := range clusters(text) {
		if left -= cluster.columns; left < 0 {
			break
		}
		kept.WriteString(cluster.text)
	}
	return kept.String() + ellipsis
}

// Height returns the number of lines that a terminal of so many columns breaks a text into; 1 for an empty one. A wide
// letter that does not fit into what is left of a line begins the next.
func Height(text string, columns int) int {
	lines, at := 1, 0
	for cluster := range clusters(text) {
		if at+cluster.columns > columns && at > 0 {
			lines, at = lines+1, 0
		}
		at += cluster.columns
	}
	return lines
}

// cluster is a letter with the marks that are drawn over it.
type cluster struct {
	text    string
	columns int
}

// emojiStyle is the variation selector that makes a wide picture of the character before.
const emojiStyle = '\ufe0f'

// clusters yields the letters of a text with their marks.
func clusters(text string) func(yield func(cluster) bool) {
	return func(yield func(cluster) bool) {
		start, columns := 0, 0
		for at, r := range text {
			of := runeWidth(r)
			if of == 0 {
				if r == emojiStyle && at > 0 {
					columns = 2
				}
				continue
			}
			if at > start && !yield(cluster{text[start:at], columns}) {
				return
			}
			start, columns = at, of
		}
		if start < len(text) {
			yield(cluster{text[start:], columns})
		}
	}
}

// runeWidth is the width of a character as terminals have it: East Asian Width (Unicode annex 11), with ambiguous ones
// narrow.
func runeWidth(r rune) int {
	switch {
	case r < 0x7f:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), 0x1160 <= r && r <= 0x11ff: // marks; vowels and finals of Hangul
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}
