// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// family is what an operator compares.
type family int

const (
	stringFamily family = iota + 1
	foldFamily          // text, case ignored
	likeFamily          // text with wildcards
	arnFamily
	numberFamily
	dateFamily
	boolFamily
	addressFamily
	binaryFamily
	nullFamily
)

// operator is one condition operator without its prefix and suffix.
type operator struct {
	family  family
	negated bool
	order   string // of numbers and dates: = < <= > >=
}

// operatorOf knows the operators, spelled as AWS spells them.
func operatorOf(name string) (operator, bool) {
	switch name {
	case "StringEquals", "StringNotEquals":
		return operator{family: stringFamily, negated: name == "StringNotEquals"}, true
	case "StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase":
		return operator{family: foldFamily, negated: name == "StringNotEqualsIgnoreCase"}, true
	case "StringLike", "StringNotLike":
		return operator{family: likeFamily, negated: name == "StringNotLike"}, true
	case "ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike": // Equals and Like are the same for AWS
		return operator{family: arnFamily, negated: strings.HasPrefix(name, "ArnNot")}, true
	case "Bool":
		return operator{family: boolFamily}, true
	case "IpAddress", "NotIpAddress":
		return operator{family: addressFamily, negated: name == "NotIpAddress"}, true
	case "BinaryEquals":
		return operator{family: binaryFamily}, true
	case "Null":
		return operator{family: nullFamily}, true
	}
	for prefix, of := range map[string]family{"Numeric": numberFamily, "Date": dateFamily} {
		order, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		switch order {
		case "Equals", "NotEquals":
			return operator{family: of, negated: order == "NotEquals", order: "="}, true
		case "LessThan":
			return operator{family: of, order: "<"}, true
		case "LessThanEquals":
			return operator{family: of, order: "<="}, true
		case "GreaterThan":
			return operator{family: of, order: ">"}, true
		case "GreaterThanEquals":
			return operator{family: of, order: ">="}, true
		}
	}
	return operator{}, false
}

// fitsKey reports whether values of the key can be compared in that way. Text operators take all but lists; of a key
// that is not known here nobody can tell.
func (f family) fitsKey(of valueType) bool {
	if of == anyType {
		return true
	}
	switch f {
	case arnFamily:
		return of == arnType
	case numberFamily:
		return of == numberType
	case dateFamily:
		return of == dateType || of == numberType // aws:EpochTime is compared with both
	case boolFamily:
		return of == boolType
	case addressFamily:
		return of == addressType
	case stringFamily, foldFamily, likeFamily, binaryFamily, nullFamily:
		return true
	}
	return false
}

// value is one value of a condition, read.
type value struct {
	text   glob
	arn    pattern
	number *big.Rat
	when   time.Time
	yes    bool
	prefix netip.Prefix
	bytes  []byte
}

func (o operator) parse(text string, variables bool) (v value, err error) {
	switch o.family {
	case stringFamily, foldFamily, likeFamily:
		v.text, err = parseGlob(text, o.family == likeFamily, variables)
	case arnFamily:
		v.arn, err = parseARNPattern(text, variables)
	case numberFamily:
		v.number, err = parseNumber(text)
	case dateFamily:
		v.when, err = parseDate(text)
	case boolFamily, nullFamily:
		v.yes, err = parseBool(text)
	case addressFamily:
		v.prefix, err = parsePrefix(text)
	case binaryFamily:
		v.bytes, err = parseBinary(text)
	}
	return v, err
}

// matches compares one value of the request. known is false when a variable has no value, and err says that the
// request's value is not what it should be.
func (o operator) matches(v value, got string, find lookup) (fits, known bool, err error) {
	switch o.family {
	case stringFamily, likeFamily:
		fits, known = v.text.match(got, find)
		return fits, known, nil
	case foldFamily:
		fits, known = v.text.fold().match(strings.ToLower(got), func(key string) (string, bool) {
			text, ok := find(key)
			return strings.ToLower(text), ok
		})
		return fits, known, nil
	case arnFamily:
		fits, known = v.arn.matchARN(got, find)
		return fits, known, nil
	case numberFamily:
		number, err := parseNumber(got)
		if err != nil {
			return false, true, err
		}
		return o.compares(number.Cmp(v.number)), true, nil
	case dateFamily:
		when, err := parseDate(got)
		return err == nil && o.compares(when.Compare(v.when)), true, err
	case boolFamily:
		yes, err := parseBool(got)
		return err == nil && v.yes == yes, true, err
	case addressFamily:
		address, err := netip.ParseAddr(got)
		return err == nil && v.prefix.Contains(address.Unmap()), true, err
	case binaryFamily:
		raw, err := parseBinary(got)
		return err == nil && bytes.Equal(raw, v.bytes), true, err
	default:
		return false, true, errors.New("an operator without a meaning")
	}
}

func (o operator) compares(c int) bool {
	switch o.order {
	case "=":
		return c == 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	}
	return false
}

func (g glob) fold() glob {
	folded := make(glob, len(g))
	for i, p := range g {
		folded[i] = piece{variable: p.variable}
		if p.instead != nil {
			instead := strings.ToLower(*p.instead)
			folded[i].instead = &instead
		}
		for _, r := range p.runes {
			if r >= 0 {
				r = []rune(strings.ToLower(string(r)))[0]
			}
			folded[i].runes = append(folded[i].runes, r)
		}
	}
	return folded
}

// parseBool reads true or false in any case.
func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%.40q is neither true nor false", text)
}

// parseBinary reads base64.
func parseBinary(text string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%.40q is not base64", text)
	}
	return raw, nil
}

// parseNumber reads a decimal number; fractions and exponents as words of strconv would take days to compute are
// refused by size.
func parseNumber(text string) (*big.Rat, error) {
	number, ok := new(big.Rat), len(text) <= 32 && strings.Trim(text, "0123456789.-") == ""
	if ok {
		_, ok = number.SetString(text)
	}
	if !ok {
		return nil, fmt.Errorf("%.40q is not a number such as 3600 or 0.5", text)
	}
	return number, nil
}

// parseDate reads what AWS takes: ISO 8601 in the forms of W3C, or seconds since 1970.
func parseDate(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02", "2006-01", "2006"} {
		if when, err := time.Parse(layout, text); err == nil {
			return when, nil
		}
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && len(text) <= 12 {
		return time.Unix(seconds, 0).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%.40q is not a date such as 2026-11-21T14:00:00Z", text)
}

func parsePrefix(text string) (netip.Prefix, error) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		if prefix.Addr().Is4In6() { // addresses are compared as IPv4, so it would never hold
			return netip.Prefix{}, fmt.Errorf("%s is IPv4 written as IPv6: write it as IPv4", text)
		}
		if prefix != prefix.Masked() {
			return netip.Prefix{}, fmt.Errorf("%s has bits behind its prefix: write %s", text, prefix.Masked())
		}
		return prefix, nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%.50q is not an address or a CIDR such as 10.0.0.0/8", text)
	}
	address = address.Unmap()
	return netip.PrefixFrom(address, address.BitLen()), nil
}

// condition is a Condition, ready to be asked.
type condition struct {
	operator
	each     string // "", "all" or "any"
	ifExists bool
	key      string // small letters
	values   []value
}

// holds reports whether the condition is met. An error means that nobody can tell.
func (c condition) holds(context map[string][]string, find lookup) (bool, error) {
	got := context[c.key]
	if c.family == nullFamily {
		return c.values[0].yes == (len(got) == 0), nil
	}
	if len(got) == 0 {
		// A negated operator holds without the key, as AWS has it, and so does ForAllValues. ForAnyValue never does.
		return c.ifExists || c.each == "all" || c.each == "" && c.negated, nil
	}
	if len(got) > 1 && c.each == "" {
		return false, fmt.Errorf("the condition key %s has %d values, and the operator is for one: write ForAllValues or ForAnyValue before it", c.key, len(got))
	}
	for _, text := range got {
		hit, err := c.hits(text, find)
		if err != nil {
			return false, fmt.Errorf("the condition key %s: %w", c.key, err)
		}
		if hit && c.each == "any" {
			return true, nil
		}
		if !hit && c.each != "any" {
			return false, nil
		}
	}
	return c.each != "any", nil
}

// hits compares one value of the request with all of the condition: with any of them, or with a negated operator with
// none.
func (c condition) hits(text string, find lookup) (bool, error) {
	for _, v := range c.values {
		fits, known, err := c.matches(v, text, find)
		if err != nil {
			return false, err
		}
		if !known && c.negated {
			return false, errors.New("a variable in it has no value in this request")
		}
		if fits {
			return !c.negated, nil
		}
	}
	return c.negated, nil
}
