// SPDX-License-Identifier: Apache-2.0

package ec2filter

// symbol is one character of a pattern, or a wildcard.
type symbol struct {
	char rune
	kind kind
}

type kind uint8

const (
	literal kind = iota
	one          // ?
	several      // *
)

// pattern is a value of a filter.
type pattern struct {
	symbols []symbol
	wild    bool
}

// read reads a value. A backslash that stands before nothing special is itself.
func read(value string, exact bool) pattern {
	var p pattern
	runes := []rune(value)
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		switch {
		case exact:
			p.symbols = append(p.symbols, symbol{char: c})
		case c == '\\' && i+1 < len(runes) && (runes[i+1] == '*' || runes[i+1] == '?' || runes[i+1] == '\\'):
			i++
			p.symbols = append(p.symbols, symbol{char: runes[i]})
		case c == '?':
			p.symbols, p.wild = append(p.symbols, symbol{kind: one}), true
		case c == '*':
			p.symbols, p.wild = append(p.symbols, symbol{kind: several}), true
		default:
			p.symbols = append(p.symbols, symbol{char: c})
		}
	}
	return p
}

// literal is the text of a pattern without wildcards.
func (p pattern) literal() string {
	runes := make([]rune, len(p.symbols))
	for i, s := range p.symbols {
		runes[i] = s.char
	}
	return string(runes)
}

// match compares in time of the product of both lengths at most: only the last "*" that was passed is tried again.
func (p pattern) match(value string) bool {
	text := []rune(value)
	at, star, from := 0, -1, 0
	for i := 0; i < len(text); {
		switch {
		case at < len(p.symbols) && p.symbols[at].kind == several:
			star, from = at, i
			at++
		case at < len(p.symbols) && (p.symbols[at].kind == one || p.symbols[at].char == text[i]):
			at++
			i++
		case star >= 0:
			from++
			at, i = star+1, from
		default:
			return false
		}
	}
	for at < len(p.symbols) && p.symbols[at].kind == several {
		at++
	}
	return at == len(p.symbols)
}
