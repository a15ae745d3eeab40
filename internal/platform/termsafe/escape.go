// SPDX-License-Identifier: Apache-2.0

package termsafe

import (
	"strconv"
	"strings"
)

// Line returns a text as one line: each character that is not printable is written as in a Go string, such as \x1b or
// \n, and each byte that is not UTF-8 as U+FFFD. Letters of all scripts and the blank stay as they are. Escaped text
// stays the same.
func Line(text string) string { return escape(text, "") }

// Lines is Line for a text of several lines: line ends and tabs stay.
func Lines(text string) string { return escape(text, "\n\t") }

func escape(text, but string) string {
	plain := true
	for i := range len(text) {
		plain = plain && ' ' <= text[i] && text[i] < 0x7f
	}
	if plain {
		return text // as nearly always
	}
	var b strings.Builder
	for _, r := range text { // bytes that are not UTF-8 come as U+FFFD
		if strconv.IsPrint(r) || strings.ContainsRune(but, r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
