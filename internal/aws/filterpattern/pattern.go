// SPDX-License-Identifier: Apache-2.0

package filterpattern

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"muster.dev/muster/internal/platform/regexpsize"
)

// MaxLength is how many characters a pattern may have.
const MaxLength = 1024

const (
	// mostExpressions is how many regular expressions a pattern may have, as on AWS.
	mostExpressions = 2
	// mostInstructions bounds the program of a regular expression: a match cannot be interrupted.
	mostInstructions = 500
)

// Pattern is a pattern that was read. Its zero value matches all messages.
type Pattern struct {
	all, none, some []term
	json            condition
	spaced          *spaced
}

// term is a text or a regular expression that a message has.
type term struct {
	text string
	re   *regexp.Regexp
}

func (t term) in(message string) bool {
	if t.re != nil {
		return t.re.MatchString(message)
	}
	return strings.Contains(message, t.text)
}

// Parse reads a pattern. The error says what is wrong with it.
func Parse(text string) (*Pattern, error) {
	if utf8.RuneCountInString(text) > MaxLength {
		return nil, fmt.Errorf("a filter pattern may have %d characters", MaxLength)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("a filter pattern is text in UTF-8")
	}
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "{"):
		found, err := parseJSON(text)
		if err != nil {
			return nil, err
		}
		return &Pattern{json: found}, nil
	case strings.HasPrefix(text, "["):
		found, err := parseSpaced(text)
		if err != nil {
			return nil, err
		}
		return &Pattern{spaced: found}, nil
	}
	return parseTerms(text)
}

// Matches reports whether a message matches the pattern.
func (p *Pattern) Matches(message string) bool {
	if p.json != nil {
		document, ok := decode(message)
		return ok && p.json.holds(document)
	}
	if p.spaced != nil {
		return p.spaced.holds(message)
	}
	for _, t := range p.all {
		if !t.in(message) {
			return false
		}
	}
	for _, t := range p.none {
		if t.in(message) {
			return false
		}
	}
	if len(p.all) > 0 || len(p.none) > 0 || len(p.some) == 0 {
		return true
	}
	for _, t := range p.some {
		if t.in(message) {
			return true
		}
	}
	return false
}

// Contains is a text that each message has which the pattern matches; empty if there is no such text.
func (p *Pattern) Contains() string {
	longest := ""
	for _, t := range p.all {
		if len(t.text) > len(longest) {
			longest = t.text
		}
	}
	return longest
}

// All reports whether the pattern matches all messages.
func (p *Pattern) All() bool {
	return p.json == nil && p.spaced == nil && len(p.all) == 0 && len(p.none) == 0 && len(p.some) == 0
}

func parseTerms(text string) (*Pattern, error) {
	p := &Pattern{}
	expressions := 0
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return p, nil
		}
		into := &p.all
		switch text[0] {
		case '-':
			into, text = &p.none, text[1:]
		case '?':
			into, text = &p.some, text[1:]
		}
		t, rest, err := parseTerm(text)
		if err != nil {
			return nil, err
		}
		if t.re != nil {
			if expressions++; expressions > mostExpressions {
				return nil, errExpressions
			}
		}
		*into = append(*into, t)
		text = rest
	}
}

// parseTerm reads one term, and returns what follows it.
func parseTerm(text string) (t term, rest string, err error) {
	switch {
	case strings.HasPrefix(text, `"`):
		t.text, rest, err = quoted(text)
	case strings.HasPrefix(text, "%"):
		t.re, rest, err = expression(text)
	default:
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			end = len(text)
		}
		t.text, rest = text[:end], text[end:]
		if strings.ContainsFunc(t.text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			err = fmt.Errorf("invalid character(s) in term %.100q: a term with other characters than letters, digits and _ must be in quotes", t.text)
		}
	}
	if err == nil && t.re == nil && t.text == "" {
		err = errors.New("a term is empty")
	}
	return t, rest, err
}

// quoted reads a text in quotes, in which \" and \\ are characters.
func quoted(text string) (value, rest string, err error) {
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			_ = out.WriteByte(text[i]) // a builder takes everything
		case text[i] == '"':
			return out.String(), text[i+1:], nil
		default:
			_ = out.WriteByte(text[i])
		}
	}
	return "", "", fmt.Errorf("the quotation that begins with %.40s has no end", text)
}

var errExpressions = fmt.Errorf("a filter pattern may have %d regular expressions", mostExpressions)

// expression reads a regular expression between two %.
func expression(text string) (re *regexp.Regexp, rest string, err error) {
	end := strings.IndexByte(text[1:], '%')
	if end < 0 {
		return nil, "", fmt.Errorf("the regular expression that begins with %.40s has no %% at its end", text)
	}
	switch size, err := regexpsize.Of(text[1 : 1+end]); {
	case err != nil:
		return nil, "", err
	case size > mostInstructions:
		return nil, "", fmt.Errorf("the regular expression %.40s is too large: with its repetitions it has %d steps, and may have %d", text, size, mostInstructions)
	}
	re, err = regexp.Compile(text[1 : 1+end])
	if err != nil {
		return nil, "", fmt.Errorf("reading a regular expression: %w", err)
	}
	return re, text[end+2:], nil
}
