// SPDX-License-Identifier: Apache-2.0

package logsinsights

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/logsinsights/logfunction"
)

type kind int

const (
	endToken kind = iota
	nameToken
	textToken
	numberToken
	periodToken
	symbolToken
)

// token is a word of the query. Text is what it means: of a nameToken its flat name, of a textToken what is between its quotes.
type token struct {
	kind     kind
	text     string
	quoted   bool     // a name that is in backquotes, at least in part
	segments []string // of a name
	Span
}

// symbols with two characters stand before those that they begin with.
var symbols = []string{"!=", "<=", ">=", "=~", "=", "<", ">", "|", "(", ")", "[", "]", ",", "+", "-", "*", "/", "%", "^"}

type lexer struct {
	query string
	at    int
}

// next returns the next token. Behind the last one it returns an endToken.
func (l *lexer) next() (token, *SyntaxError) {
	l.skip()
	start := l.at
	if start == len(l.query) {
		return token{kind: endToken, Span: Span{start, start}}, nil
	}
	r, size := utf8.DecodeRuneInString(l.query[start:])
	switch {
	case r == '`' || startsName(r):
		return l.name()
	case r >= '0' && r <= '9':
		return l.number()
	case r == '"' || r == '\'':
		return l.quoted(byte(r))
	}
	for _, symbol := range symbols {
		if strings.HasPrefix(l.query[start:], symbol) {
			l.at += len(symbol)
			return token{kind: symbolToken, text: symbol, Span: Span{start, l.at}}, nil
		}
	}
	return token{}, errorAt(l.query, Span{start, start + size}, "unexpected symbol found %c", r)
}

// skip moves behind spaces and comments.
func (l *lexer) skip() {
	for l.at < len(l.query) {
		r, size := utf8.DecodeRuneInString(l.query[l.at:])
		switch {
		case r == '#':
			end := strings.IndexByte(l.query[l.at:], '\n')
			if end < 0 {
				end = len(l.query) - l.at
			}
			l.at += end
		case unicode.IsSpace(r):
			l.at += size
		default:
			return
		}
	}
}

func startsName(r rune) bool { return r == '_' || r == '@' || unicode.IsLetter(r) }

func inName(r rune) bool { return startsName(r) || r >= '0' && r <= '9' }

// name reads a field, function or keyword: segments that are joined by dots, and indexes of lists in brackets.
func (l *lexer) name() (token, *SyntaxError) {
	t := token{kind: nameToken, Span: Span{Start: l.at}}
	for {
		segment, quoted, err := l.segment()
		if err != nil {
			return token{}, err
		}
		t.segments = append(t.segments, segment)
		t.quoted = t.quoted || quoted
		for !isKeyword(t.segments) {
			index := l.index()
			if index == "" {
				break
			}
			t.segments = append(t.segments, index)
		}
		rest := l.query[l.at:]
		next, _ := utf8.DecodeRuneInString(strings.TrimPrefix(rest, "."))
		if !strings.HasPrefix(rest, ".") || next != '`' && !inName(next) {
			break
		}
		l.at++
	}
	t.End = l.at
	t.text = strings.Join(t.segments, ".")
	return t, nil
}

// isKeyword reports whether a bracket after the name begins a list: `Type in["a"]`.
func isKeyword(segments []string) bool {
	return len(segments) == 1 && strings.EqualFold(segments[0], "in")
}

func (l *lexer) segment() (text string, quoted bool, err *SyntaxError) {
	start := l.at
	if l.query[start] == '`' {
		length := strings.IndexByte(l.query[start+1:], '`')
		if length < 1 {
			return "", false, errorAt(l.query, Span{start, start + 1}, "unexpected symbol found `: a name in backquotes must not be empty and must end")
		}
		l.at += length + 2
		return l.query[start+1 : l.at-1], true, nil
	}
	for l.at < len(l.query) {
		r, size := utf8.DecodeRuneInString(l.query[l.at:])
		if !inName(r) {
			break
		}
		l.at += size
	}
	return l.query[start:l.at], false, nil
}

// index reads the index of a list in brackets, and returns its digits, or nothing.
func (l *lexer) index() string {
	rest, found := strings.CutPrefix(l.query[l.at:], "[")
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	if !found || digits == "" || !strings.HasPrefix(rest[len(digits):], "]") {
		return ""
	}
	l.at += len(digits) + 2
	return digits
}

// number reads a decimal number, or a period such as 5m.
func (l *lexer) number() (token, *SyntaxError) {
	start := l.at
	l.digits()
	if unit := l.letters(); unit != "" {
		if _, ok := logfunction.ParsePeriod(l.query[start:l.at] + unit); ok {
			l.at += len(unit)
			return token{kind: periodToken, text: l.query[start:l.at], Span: Span{start, l.at}}, nil
		}
	}
	if rest := l.query[l.at:]; len(rest) > 1 && rest[0] == '.' && rest[1] >= '0' && rest[1] <= '9' {
		l.at++
		l.digits()
	}
	l.exponent()
	if r, size := utf8.DecodeRuneInString(l.query[l.at:]); inName(r) && size > 0 {
		end := l.at + len(l.letters())
		return token{}, errorAt(l.query, Span{start, end}, "unexpected symbol found %s: a name that begins with a digit stands in backquotes", l.query[start:end])
	}
	return token{kind: numberToken, text: l.query[start:l.at], Span: Span{start, l.at}}, nil
}

func (l *lexer) digits() {
	l.at += len(l.query[l.at:]) - len(strings.TrimLeft(l.query[l.at:], "0123456789"))
}

// letters returns the name characters that follow.
func (l *lexer) letters() string {
	rest := l.query[l.at:]
	return rest[:len(rest)-len(strings.TrimLeftFunc(rest, inName))]
}

func (l *lexer) exponent() {
	before := l.at
	if l.at == len(l.query) || l.query[l.at] != 'e' && l.query[l.at] != 'E' {
		return
	}
	l.at++
	if l.at < len(l.query) && (l.query[l.at] == '+' || l.query[l.at] == '-') {
		l.at++
	}
	digits := l.at
	if l.digits(); l.at == digits {
		l.at = before
	}
}

// escapes are the characters that a backslash stands before in a text, and what both mean. Other backslashes stay as they are.
var escapes = map[byte]string{'\\': `\`, '"': `"`, '\'': `'`, 'n': "\n", 't': "\t", 'r': "\r"}

func (l *lexer) quoted(quote byte) (token, *SyntaxError) {
	start := l.at
	var text strings.Builder
	for l.at++; l.at < len(l.query); l.at++ {
		c := l.query[l.at]
		if c == quote {
			l.at++
			return token{kind: textToken, text: text.String(), Span: Span{start, l.at}}, nil
		}
		if c == '\\' && l.at+1 < len(l.query) {
			if meaning, found := escapes[l.query[l.at+1]]; found {
				text.WriteString(meaning)
				l.at++
				continue
			}
		}
		text.WriteByte(c)
	}
	return token{}, errorAt(l.query, Span{start, start + 1}, "unexpected symbol found %c: a text must end with the quotation mark that it begins with", quote)
}

// regex reads a regular expression whose first slash was read, up to the next slash that no backslash stands before.
func (l *lexer) regex(slash token) (string, Span, *SyntaxError) {
	var text strings.Builder
	for l.at = slash.End; l.at < len(l.query); l.at++ {
		c := l.query[l.at]
		switch {
		case c == '/':
			l.at++
			return text.String(), Span{slash.Start, l.at}, nil
		case c == '\\' && strings.HasPrefix(l.query[l.at+1:], "/"):
			l.at++
			text.WriteByte('/')
		case c == '\\' && l.at+1 < len(l.query):
			l.at++
			text.WriteByte(c)
			text.WriteByte(l.query[l.at])
		default:
			text.WriteByte(c)
		}
	}
	return "", Span{}, errorAt(l.query, slash.Span, "unexpected symbol found /: a regular expression must end with a slash")
}
