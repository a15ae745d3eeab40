// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"strings"
)

// challenge is one way to log in that a server names (RFC 9110, section 11.6.1).
type challenge struct {
	scheme     string // in lower case
	parameters map[string]string
}

var errChallenge = errors.New("the registry's WWW-Authenticate header cannot be read")

// maxChallenge bounds a header's value, in bytes.
const maxChallenge = 4 << 10

// parseChallenge reads the value of a WWW-Authenticate header with one challenge, as registries send them. A parameter
// that is there twice is refused.
func parseChallenge(value string) (challenge, error) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	c := challenge{strings.ToLower(scheme), map[string]string{}}
	if len(value) > maxChallenge || !isToken(scheme) {
		return challenge{}, errChallenge
	}
	for rest = strings.TrimLeft(rest, " "); rest != ""; {
		key, after, ok := strings.Cut(rest, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if _, twice := c.parameters[key]; !ok || !isToken(key) || twice {
			return challenge{}, errChallenge
		}
		text, left, err := parameter(strings.TrimLeft(after, " "))
		if err != nil {
			return challenge{}, err
		}
		c.parameters[key] = text
		if rest = strings.TrimLeft(left, " "); rest == "" {
			break
		}
		if rest[0] != ',' {
			return challenge{}, errChallenge
		}
		rest = strings.TrimLeft(rest, ", ")
	}
	return c, nil
}

// parameter reads a token or a quoted string, and returns what is left.
func parameter(text string) (value, left string, err error) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, ", ")
		if end < 0 {
			end = len(text)
		}
		if !isToken(text[:end]) {
			return "", "", errChallenge
		}
		return text[:end], text[end:], nil
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return out.String(), text[i+1:], nil
		case '\\':
			if i++; i == len(text) {
				return "", "", errChallenge
			}
		}
		out.WriteByte(text[i])
	}
	return "", "", errChallenge
}

// isToken reports whether text is a token of RFC 9110, section 5.6.2.
func isToken(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return text != ""
}
