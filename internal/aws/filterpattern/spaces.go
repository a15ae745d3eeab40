// SPDX-License-Identifier: Apache-2.0

package filterpattern

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// spaced is a pattern for fields between spaces: [ip, user, …, status = 4*].
type spaced struct {
	// before are the fields before three points, and after those behind them. Rest says that there were three points.
	before, after []spacedField
	rest          bool
}

// spacedField is a field with its name, and what it is compared with; nil for anything.
type spacedField struct {
	name      string
	condition condition
}

// holds reports whether a message has these fields.
func (s *spaced) holds(message string) bool {
	words := split(message)
	if len(words) < len(s.before)+len(s.after) || !s.rest && len(words) != len(s.before) {
		return false
	}
	named := map[string]any{}
	for i, f := range s.before {
		named[f.name] = words[i]
	}
	for i, f := range s.after {
		named[f.name] = words[len(words)-len(s.after)+i]
	}
	for _, f := range slices.Concat(s.before, s.after) {
		if f.condition != nil && !f.condition.holds(named) {
			return false
		}
	}
	return true
}

// split cuts a message at spaces. A text in quotes or brackets is one field, without them.
func split(message string) (words []string) {
	for {
		message = strings.TrimLeftFunc(message, unicode.IsSpace)
		if message == "" {
			return words
		}
		if closing := map[byte]string{'"': `"`, '[': "]"}[message[0]]; closing != "" {
			if inside, rest, closed := strings.Cut(message[1:], closing); closed {
				words, message = append(words, inside), rest
				continue
			}
		}
		end := strings.IndexFunc(message, unicode.IsSpace)
		if end < 0 {
			end = len(message)
		}
		words, message = append(words, message[:end]), message[end:]
	}
}

// parseSpaced reads [FIELD, FIELD, …].
func parseSpaced(text string) (*spaced, error) {
	inner, closed := strings.CutSuffix(text[1:], "]")
	if !closed {
		return nil, errors.New("a pattern for fields between spaces ends with ]")
	}
	s := &spaced{}
	into := &s.before
	p := &parser{text: inner, names: true}
	for {
		if p.take("...") {
			if s.rest {
				return nil, errors.New("a pattern can have ... once")
			}
			s.rest, into = true, &s.after
		} else {
			field, err := p.field()
			if err != nil {
				return nil, err
			}
			*into = append(*into, field)
		}
		if p.take(",") {
			continue
		}
		if p.space(); p.text != "" {
			return nil, fmt.Errorf("a comma is expected before %.40q", p.text)
		}
		return s, nil
	}
}

// field reads a name, and what it is compared with, if anything.
func (p *parser) field() (spacedField, error) {
	at := p.text
	selector, err := p.selector()
	if err != nil {
		return spacedField{}, err
	}
	name, _ := selector[0].(string) // as word made it
	if p.space(); p.text == "" || p.text[0] == ',' {
		return spacedField{name: name}, nil
	}
	p.text = at
	found, err := p.any(0)
	return spacedField{name, found}, err
}
