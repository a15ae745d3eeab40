// SPDX-License-Identifier: Apache-2.0

package logvalue

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// Order returns -1, 0 or 1 as a sorts before, with or after b in ascending order. It is the natural order of the sort
// command: Null, then what is not a number, then numbers. A text is compared by chunks: digits that follow each other are one
// chunk, ordered by its length and then by its value, and all else is ordered by code points. Equal numbers that are spelled
// differently are ordered by their text.
func Order(a, b Value) int {
	x, aIsNumber := a.Number()
	y, bIsNumber := b.Number()
	if byKind := cmp.Compare(rank(a, aIsNumber), rank(b, bIsNumber)); byKind != 0 {
		return byKind
	}
	if aIsNumber {
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a.String(), b.String()))
	}
	return naturalOrder(a.String(), b.String())
}

func rank(v Value, isNumber bool) int {
	switch {
	case v.IsNull():
		return 0
	case isNumber:
		return 2
	default:
		return 1
	}
}

func naturalOrder(a, b string) int {
	whole, other := a, b
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x != "" && y != "" {
			if byNumber := orderDigits(x, y); byNumber != 0 {
				return byNumber
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		r, n := utf8.DecodeRuneInString(a)
		s, m := utf8.DecodeRuneInString(b)
		if r != s {
			return cmp.Compare(r, s)
		}
		a, b = a[n:], b[m:]
	}
	if byRest := cmp.Compare(len(a), len(b)); byRest != 0 {
		return byRest
	}
	return strings.Compare(whole, other)
}

// digits returns the digits that the text begins with.
func digits(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
}

func orderDigits(a, b string) int {
	if byLength := cmp.Compare(len(a), len(b)); byLength != 0 {
		return byLength
	}
	return strings.Compare(a, b)
}
