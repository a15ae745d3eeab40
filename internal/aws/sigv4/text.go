// SPDX-License-Identifier: Apache-2.0

package sigv4

import "strings"

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// isKeyID reports whether s may be an access key id.
func isKeyID(s string) bool {
	return s != "" && len(s) <= maxAccessKeyID && all(s, func(c byte) bool { return isAlnum(c) || c == '_' })
}

// isWord reports whether s may be a date, region or service.
func isWord(s string) bool {
	return s != "" && len(s) <= 63 && all(s, func(c byte) bool { return isAlnum(c) && lower(c) == c || c == '-' })
}

// isHeaderName reports whether s is the name of a header in lower case: RFC 9110, section 5.6.2.
func isHeaderName(s string) bool {
	return s != "" && all(s, func(c byte) bool { return isAlnum(c) && lower(c) == c || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 })
}

func isGraphic(c byte) bool { return c > ' ' && c < 0x7f }

func all(s string, is func(byte) bool) bool {
	for i := range len(s) {
		if !is(s[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// equalFold compares ASCII without case; strings.EqualFold would also take the Kelvin sign for a k.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// values counts the values of a header, in whatever case its name is, and has one of them.
func values(header map[string][]string, name string) (n int, one string) {
	for spelled, all := range header {
		if len(all) > 0 && equalFold(spelled, name) {
			n, one = n+len(all), all[0]
		}
	}
	return n, one
}
