// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
)

// Or returns the first text that is not empty.
func Or(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// OrDash returns s, or "-" for an empty s, which is how tables show an empty cell.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Count returns a number with its noun, in the singular for 1.
func Count[N int | int32](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Shorten cuts s down to most characters, the last of which is then an ellipsis.
func Shorten(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}
