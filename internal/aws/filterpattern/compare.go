// SPDX-License-Identifier: Apache-2.0

package filterpattern

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// is compares a field with NULL, TRUE or FALSE, or says that it is not there.
type is struct {
	selector []any
	what     string
}

func (c is) holds(document any) bool {
	value, found := find(document, c.selector)
	switch c.what {
	case "NULL":
		return found && value == nil
	case "TRUE":
		return value == true
	case "FALSE":
		return value == false
	}
	return !found
}

// text compares a field with a text, in which each * stands for any text, or with a regular expression.
type text struct {
	selector []any
	not      bool
	matches  func(string) bool
}

func (c text) holds(document any) bool {
	value, found := find(document, c.selector)
	if !found {
		return false
	}
	var has string
	switch value := value.(type) {
	case string:
		has = value
	case json.Number:
		has = value.String()
	case bool:
		has = strconv.FormatBool(value)
	default:
		return false
	}
	return c.matches(has) != c.not
}

// number compares a field with a number.
type number struct {
	selector []any
	operator string
	with     float64
}

func (c number) holds(document any) bool {
	value, _ := find(document, c.selector)
	var has float64
	ok := false
	switch value := value.(type) {
	case json.Number:
		has, ok = numberOf(value.String())
	case string:
		has, ok = numberOf(value)
	}
	if !ok {
		return false
	}
	switch c.operator {
	case "=":
		return has == c.with
	case "!=":
		return has != c.with
	case "<":
		return has < c.with
	case "<=":
		return has <= c.with
	case ">":
		return has > c.with
	}
	return has >= c.with
}

// numberOf reads a number in digits. Other texts that Go reads as a number, such as inf, nan and 0x1p4, are words here.
func numberOf(text string) (number float64, ok bool) {
	if text == "" || strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false
	}
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil
}

// compared reads the value of a comparison.
func (p *parser) compared(selector []any, operator string) (condition, error) {
	p.space()
	equality := operator == "=" || operator == "!="
	switch {
	case strings.HasPrefix(p.text, "%") && equality:
		if p.expressions++; p.expressions > mostExpressions {
			return nil, errExpressions
		}
		re, rest, err := expression(p.text)
		if err != nil {
			return nil, err
		}
		p.text = rest
		return text{selector, operator == "!=", re.MatchString}, nil
	case strings.HasPrefix(p.text, `"`) && equality:
		value, rest, err := quoted(p.text)
		if err != nil {
			return nil, err
		}
		p.text = rest
		return text{selector, operator == "!=", wild(value)}, nil
	}
	end := strings.IndexFunc(p.text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("&|(),", r) })
	if end < 0 {
		end = len(p.text)
	}
	word := p.text[:end]
	p.text = p.text[end:]
	if with, ok := numberOf(word); ok {
		return number{selector, operator, with}, nil
	}
	switch {
	case word == "":
		return nil, fmt.Errorf("a value is expected before %.40q", p.text)
	case !equality:
		return nil, fmt.Errorf("%s compares numbers, and %.40q is not a number", operator, word)
	case strings.ContainsFunc(word, func(r rune) bool { return !plain(r) && !strings.ContainsRune("*.-:/", r) }):
		return nil, fmt.Errorf("the value %.40q must be in quotes", word)
	}
	return text{selector, operator == "!=", wild(word)}, nil
}

// wild matches texts with one that has * for any text.
func wild(value string) func(string) bool {
	parts := strings.Split(value, "*")
	first, between, last := parts[0], parts[1:], parts[len(parts)-1]
	if len(between) == 0 {
		return func(has string) bool { return has == value }
	}
	between = between[:len(between)-1]
	return func(has string) bool {
		if len(has) < len(first)+len(last) || !strings.HasPrefix(has, first) || !strings.HasSuffix(has, last) {
			return false
		}
		has = has[len(first) : len(has)-len(last)]
		for _, part := range between {
			i := strings.Index(has, part)
			if i < 0 {
				return false
			}
			has = has[i+len(part):]
		}
		return true
	}
}
