// SPDX-License-Identifier: Apache-2.0

package termsafe

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
)

// JSON returns a text of JSON that says the same, with each character that is not printable as an escape of JSON: so
// nothing in a string is invisible, moves the cursor or turns the direction of letters round. It must be JSON.
func JSON(text []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && !strconv.IsPrint(r) }
	if bytes.IndexFunc(text, hidden) < 0 {
		return text // as nearly always
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if !hidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}
