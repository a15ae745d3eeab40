// SPDX-License-Identifier: Apache-2.0

package sigv4

import (
	"slices"
	"strings"
)

const (
	maxQuery      = 16 << 10 // bytes
	maxParameters = 256
)

// parameter is one of the query, both halves in the one encoding that is signed.
type parameter struct{ name, value string }

// readQuery takes a query apart, in the order it came. Nothing is copied that is in the canonical encoding already.
func readQuery(raw string, into []parameter) ([]parameter, *Refusal) {
	if len(raw) > maxQuery {
		return nil, incomplete(RuleQuery, "a query that is too long", "send at most 16 KiB, the rest in the body")
	}
	for more := raw != ""; more; {
		var one string
		one, raw, more = strings.Cut(raw, "&")
		name, value, _ := strings.Cut(one, "=") // "name" is signed as "name="
		if name == "" {
			return nil, incomplete(RuleQuery, quote(one)+" between two &", "give every parameter a name")
		}
		p := parameter{name, value}
		var ok bool
		if p.name, ok = canonicalEscapes(name); ok {
			p.value, ok = canonicalEscapes(value)
		}
		if !ok {
			return nil, incomplete(RuleQuery, "parameter "+quote(name)+" with an encoding that can be read in two ways",
				"send a space as %20, a plus as %2B, a semicolon as %3B, and % only before two hex digits")
		}
		if len(into) == maxParameters {
			return nil, incomplete(RuleQuery, "more than 256 parameters", "send the parameters in the body")
		}
		into = append(into, p)
	}
	return into, nil
}

// sortQuery puts the parameters into the order in which they are signed: by name, then by value, as encoded.
func sortQuery(all []parameter) {
	slices.SortFunc(all, func(a, b parameter) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
}

// canonicalEscapes is s with all escaped but letters, digits and -._~, and with escapes in upper case. It refuses what
// could mean two things: a plus (itself or a space), a semicolon (itself or a separator), a percent sign that escapes
// nothing.
func canonicalEscapes(s string) (string, bool) {
	if isCanonical(s) {
		return s, true
	}
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '+' || c == ';' || c == '#' || c < ' ' || c == 0x7f:
			return "", false
		case c == '%':
			var ok bool
			if c, ok = escaped(s, i); !ok {
				return "", false
			}
			i += 2
		}
		out = appendEscaped(out, c)
	}
	return string(out), true
}

func isCanonical(s string) bool {
	for i := 0; i < len(s); i++ {
		if isUnreserved(s[i]) {
			continue
		}
		c, ok := escaped(s, i)
		if !ok || isUnreserved(c) || s[i+1] >= 'a' || s[i+2] >= 'a' {
			return false
		}
		i += 2
	}
	return true
}

// unescape undoes canonicalEscapes.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			c, _ = escaped(s, i)
			i += 2
		}
		out.WriteByte(c)
	}
	return out.String()
}

// escaped is the byte that the escape at s[i:] stands for, if there is one.
func escaped(s string, i int) (byte, bool) {
	if i+2 >= len(s) || s[i] != '%' {
		return 0, false
	}
	high, ok := unhex(s[i+1])
	low, also := unhex(s[i+2])
	return high<<4 | low, ok && also
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

func appendEscaped(out []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	if isUnreserved(c) {
		return append(out, c)
	}
	return append(out, '%', digits[c>>4], digits[c&15])
}

// isUnreserved reports whether a canonical request has the byte unescaped: RFC 3986, section 2.3.
func isUnreserved(c byte) bool {
	const (
		letters = 1<<26 - 1
		low     = 1<<'-' | 1<<'.' | (1<<10-1)<<'0'
		high    = letters<<('A'-64) | letters<<('a'-64) | 1<<('_'-64) | 1<<('~'-64)
	)
	if c < 64 {
		return low>>c&1 == 1
	}
	return c < 128 && uint64(high)>>(c-64)&1 == 1
}
