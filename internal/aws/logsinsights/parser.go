// SPDX-License-Identifier: Apache-2.0

package logsinsights

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of CloudWatch Logs: the length of a query in code points, and the rows of a result.
const (
	MaxQuery = 10_000
	MaxRows  = 10_000
)

// MaxSteps is about how many steps the programs of all regular expressions of a query may have, their repetitions written out: a match
// cannot be interrupted.
const MaxSteps = 10_000

// maxDepth is how deep expressions may be nested: a sign and a not are one level, parentheses and a call are two.
const maxDepth = 200

// Parse reads a query. The error is a *SyntaxError.
func Parse(query string) (*Query, error) {
	if length := utf8.RuneCountInString(query); length > MaxQuery {
		return nil, errorAt(query, Span{Start: len(query)}, "query has %d characters: it may have at most %d", length, MaxQuery)
	}
	if !utf8.ValidString(query) {
		at := strings.IndexRune(query, utf8.RuneError)
		return nil, errorAt(query, Span{at, at + 1}, "unexpected symbol found: the query is not UTF-8")
	}
	p := &parser{lexer: lexer{query: query}}
	p.advance()
	parsed := &Query{}
	for {
		parsed.Commands = append(parsed.Commands, p.command())
		if !p.takeSymbol("|") {
			break
		}
	}
	if p.err == nil && p.tok.kind != endToken {
		p.unexpected()
	}
	if p.err != nil {
		return nil, p.err
	}
	if err := check(query, parsed); err != nil {
		return nil, err
	}
	return parsed, nil
}

// AsSyntaxError returns the SyntaxError in an error of Parse.
func AsSyntaxError(err error) (*SyntaxError, bool) {
	var syntax *SyntaxError
	return syntax, errors.As(err, &syntax)
}

// parser reads one token ahead. Its first error stays, and from then on it is at the end of the query.
type parser struct {
	lexer
	tok     token
	last    int // where the token before tok ended
	depth   int
	inStats bool
	steps   int // of all regular expressions
	err     *SyntaxError
}

func (p *parser) advance() {
	p.last = p.tok.End
	if p.err != nil {
		return
	}
	tok, err := p.next()
	if err != nil {
		p.stop(err)
		return
	}
	p.tok = tok
}

func (p *parser) stop(err *SyntaxError) {
	if p.err == nil {
		p.err = err
	}
	p.tok = token{kind: endToken, Span: Span{len(p.query), len(p.query)}}
}

func (p *parser) fail(at Span, format string, arguments ...any) {
	p.stop(errorAt(p.query, at, format, arguments...))
}

// unexpected fails at the current token.
func (p *parser) unexpected() {
	if p.tok.kind == endToken {
		p.fail(p.tok.Span, "unexpected end of query")
		return
	}
	p.fail(p.tok.Span, "unexpected symbol found %s", p.query[p.tok.Start:p.tok.End])
}

func (p *parser) isSymbol(symbol string) bool {
	return p.tok.kind == symbolToken && p.tok.text == symbol
}

func (p *parser) takeSymbol(symbol string) bool {
	if !p.isSymbol(symbol) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expectSymbol(symbol string) {
	if !p.takeSymbol(symbol) {
		p.unexpected()
	}
}

func (p *parser) isWord(words ...string) bool {
	return p.tok.kind == nameToken && !p.tok.quoted && slices.Contains(words, strings.ToLower(p.tok.text))
}

func (p *parser) takeWord(words ...string) bool {
	if !p.isWord(words...) {
		return false
	}
	p.advance()
	return true
}

// alias reads the name of a field to be made.
func (p *parser) alias() string {
	if p.tok.kind != nameToken || p.isWord(reserved...) {
		p.unexpected()
		return ""
	}
	name := p.tok.text
	p.advance()
	return name
}

// aliases reads names that are separated by commas.
func (p *parser) aliases() []string {
	names := []string{p.alias()}
	for p.takeSymbol(",") {
		names = append(names, p.alias())
	}
	return names
}
