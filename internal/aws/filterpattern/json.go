// SPDX-License-Identifier: Apache-2.0

package filterpattern

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// maxDepth bounds how deep parentheses may be.
const maxDepth = 32

// condition is what a pattern says of a document.
type condition interface{ holds(document any) bool }

type (
	both   struct{ a, b condition }
	either struct{ a, b condition }
)

func (c both) holds(document any) bool   { return c.a.holds(document) && c.b.holds(document) }
func (c either) holds(document any) bool { return c.a.holds(document) || c.b.holds(document) }

// decode reads a message that is one JSON object or array.
func decode(message string) (document any, ok bool) {
	decoder := json.NewDecoder(strings.NewReader(message))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return document, true
}

// parseJSON reads { CONDITION }.
func parseJSON(text string) (condition, error) {
	inner, closed := strings.CutSuffix(text[1:], "}")
	if !closed {
		return nil, errors.New("a pattern of JSON ends with }")
	}
	p := &parser{text: inner}
	found, err := p.any(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.text != "" {
		return nil, fmt.Errorf("%.40q follows the end of the condition", p.text)
	}
	return found, nil
}

// parser reads what is left of a pattern.
type parser struct {
	text string
	// names says that fields are selected by their names, and not as $.NAME.
	names bool
	// expressions is how many regular expressions were read.
	expressions int
}

func (p *parser) space() { p.text = strings.TrimLeftFunc(p.text, unicode.IsSpace) }

// take takes a symbol, if it is next.
func (p *parser) take(symbol string) bool {
	p.space()
	rest, found := strings.CutPrefix(p.text, symbol)
	if found {
		p.text = rest
	}
	return found
}

// word takes a word in any case, if it is next and ends there.
func (p *parser) word(word string) bool {
	p.space()
	if len(p.text) < len(word) || !strings.EqualFold(p.text[:len(word)], word) {
		return false
	}
	if rest := p.text[len(word):]; rest == "" || !plain(rune(rest[0])) {
		p.text = rest
		return true
	}
	return false
}

// plain reports whether a character needs no quotes.
func plain(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// any reads conditions between ||.
func (p *parser) any(depth int) (condition, error) {
	left, err := p.all(depth)
	for err == nil && p.take("||") {
		var right condition
		if right, err = p.all(depth); err == nil {
			left = either{left, right}
		}
	}
	return left, err
}

// all reads conditions between &&.
func (p *parser) all(depth int) (condition, error) {
	left, err := p.one(depth)
	for err == nil && p.take("&&") {
		var right condition
		if right, err = p.one(depth); err == nil {
			left = both{left, right}
		}
	}
	return left, err
}

func (p *parser) one(depth int) (condition, error) {
	if !p.take("(") {
		return p.comparison()
	}
	if depth >= maxDepth {
		return nil, fmt.Errorf("parentheses are deeper than %d", maxDepth)
	}
	inner, err := p.any(depth + 1)
	if err == nil && !p.take(")") {
		err = fmt.Errorf("a parenthesis has no end before %.40q", p.text)
	}
	return inner, err
}

// comparison reads a selector, an operator and a value.
func (p *parser) comparison() (condition, error) {
	selector, err := p.selector()
	if err != nil {
		return nil, err
	}
	switch {
	case p.word("IS"):
		for _, word := range []string{"NULL", "TRUE", "FALSE"} {
			if p.word(word) {
				return is{selector, word}, nil
			}
		}
		return nil, fmt.Errorf("IS is followed by NULL, TRUE or FALSE, not by %.40q", p.text)
	case p.word("NOT"):
		if !p.word("EXISTS") {
			return nil, fmt.Errorf("NOT is followed by EXISTS, not by %.40q", p.text)
		}
		return is{selector, "NOT EXISTS"}, nil
	}
	for _, operator := range []string{"!=", ">=", "<=", "=", ">", "<"} {
		if p.take(operator) {
			return p.compared(selector, operator)
		}
	}
	return nil, fmt.Errorf("an operator is expected before %.40q: =, !=, <, >, <=, >=, IS or NOT EXISTS", p.text)
}

// selector reads $.a.b[0]['c.d'].
func (p *parser) selector() (steps []any, err error) {
	if p.names {
		return p.name()
	}
	if !p.take("$") {
		return nil, fmt.Errorf("a selector such as $.verb is expected before %.40q", p.text)
	}
	for {
		switch {
		case strings.HasPrefix(p.text, "."):
			end := strings.IndexFunc(p.text[1:], func(r rune) bool { return !plain(r) && r != '-' && r != '@' && r != '/' })
			if end < 0 {
				end = len(p.text) - 1
			}
			if end == 0 {
				return nil, fmt.Errorf("a name is expected before %.40q", p.text[1:])
			}
			steps = append(steps, p.text[1:1+end])
			p.text = p.text[1+end:]
		case strings.HasPrefix(p.text, "["):
			inside, rest, closed := strings.Cut(p.text[1:], "]")
			if !closed {
				return nil, fmt.Errorf("a bracket has no end: %.40q", p.text)
			}
			p.text = rest
			if index, err := strconv.Atoi(inside); err == nil && index >= 0 {
				steps = append(steps, index)
			} else if name := strings.Trim(inside, `'"`); len(name) == len(inside)-2 && name != "" {
				steps = append(steps, name)
			} else {
				return nil, fmt.Errorf("[%.40s] is neither an index nor a name in quotes", inside)
			}
		case len(steps) == 0:
			return nil, fmt.Errorf("a selector such as $.verb is expected before %.40q", p.text)
		default:
			return steps, nil
		}
	}
}

// name reads the name of a field between spaces.
func (p *parser) name() (steps []any, err error) {
	p.space()
	end := strings.IndexFunc(p.text, func(r rune) bool { return !plain(r) })
	if end < 0 {
		end = len(p.text)
	}
	if end == 0 {
		return nil, fmt.Errorf("the name of a field is expected before %.40q", p.text)
	}
	name := p.text[:end]
	p.text = p.text[end:]
	return []any{name}, nil
}

// find follows a selector through a document.
func find(document any, selector []any) (value any, found bool) {
	for _, step := range selector {
		switch step := step.(type) {
		case string:
			object, ok := document.(map[string]any)
			if !ok {
				return nil, false
			}
			if document, ok = object[step]; !ok {
				return nil, false
			}
		case int:
			list, ok := document.([]any)
			if !ok || step >= len(list) {
				return nil, false
			}
			document = list[step]
		}
	}
	return document, true
}
