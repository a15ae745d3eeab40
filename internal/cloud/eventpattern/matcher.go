// SPDX-License-Identifier: Apache-2.0

package eventpattern

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
)

// matcher is a way to match: it is asked about the value of a field, and whether there is the field.
type matcher func(value any, there bool) bool

// parseLeaf reads the list of a field.
func parseLeaf(path string, list []any) ([]matcher, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: an empty list matches nothing", path)
	}
	var all []matcher
	for i, item := range list {
		one, err := parseWay(item)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", path, i, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func parseWay(item any) (matcher, error) {
	object, is := item.(map[string]any)
	if !is {
		return equals(item)
	}
	name, operand, err := only(object)
	if err != nil {
		return nil, err
	}
	switch name {
	case "exists":
		want, is := operand.(bool)
		if !is {
			return nil, errors.New("exists must be true or false")
		}
		return func(value any, there bool) bool {
			_, inner := value.(map[string]any)
			return (there && !inner) == want
		}, nil
	case "numeric":
		return numeric(operand)
	case "cidr":
		return cidr(operand)
	case "anything-but":
		return anythingBut(operand)
	}
	return texts(name, operand)
}

// only is the one field of an object.
func only(object map[string]any) (string, any, error) {
	if len(object) != 1 {
		return "", nil, fmt.Errorf("a way to match is an object with one field: it has %d", len(object))
	}
	for name, operand := range object {
		return name, operand, nil
	}
	return "", nil, nil
}

// equals matches a value: a text, a number, true, false or null.
func equals(want any) (matcher, error) {
	switch want := want.(type) {
	case nil, string, bool:
		return func(value any, there bool) bool { return there && value == want }, nil
	case json.Number:
		number, ok := new(big.Rat).SetString(bounded(want))
		if !ok {
			return nil, fmt.Errorf("the number %.40s has too many digits", want)
		}
		return func(value any, there bool) bool {
			other, ok := numberOf(value)
			return there && ok && other.Cmp(number) == 0
		}, nil
	}
	return nil, errors.New("a list within a list matches nothing")
}

// bounded is a number as text, or no number if writing it out would take much room.
func bounded(n json.Number) string {
	text := n.String()
	at := strings.IndexAny(text, "eE")
	if len(text) > 40 || at >= 0 && len(strings.TrimLeft(text[at+1:], "+-0")) > 2 {
		return ""
	}
	return text
}

func numberOf(value any) (*big.Rat, bool) {
	n, is := value.(json.Number)
	if !is {
		return nil, false
	}
	return new(big.Rat).SetString(bounded(n))
}

// texts are the ways about texts.
func texts(name string, operand any) (matcher, error) {
	test, err := textTest(name, operand)
	if err != nil {
		return nil, err
	}
	return func(value any, _ bool) bool {
		text, is := value.(string)
		return is && test(text)
	}, nil
}

func textTest(name string, operand any) (func(string) bool, error) {
	if object, is := operand.(map[string]any); is && (name == "prefix" || name == "suffix") {
		inner, text, err := only(object)
		want, is := text.(string)
		if err != nil || inner != "equals-ignore-case" || !is {
			return nil, fmt.Errorf("%s must be a text, or an object with equals-ignore-case", name)
		}
		want = strings.ToLower(want)
		if name == "prefix" {
			return func(text string) bool { return strings.HasPrefix(strings.ToLower(text), want) }, nil
		}
		return func(text string) bool { return strings.HasSuffix(strings.ToLower(text), want) }, nil
	}
	switch name {
	case "prefix", "suffix", "equals-ignore-case", "wildcard":
	default:
		return nil, fmt.Errorf("unsupported way to match %.60q: there are prefix, suffix, equals-ignore-case, wildcard, anything-but, numeric, cidr and exists", name)
	}
	want, is := operand.(string)
	if !is {
		return nil, fmt.Errorf("%s must be a text", name)
	}
	switch name {
	case "prefix":
		return func(text string) bool { return strings.HasPrefix(text, want) }, nil
	case "suffix":
		return func(text string) bool { return strings.HasSuffix(text, want) }, nil
	case "equals-ignore-case":
		return func(text string) bool { return strings.EqualFold(text, want) }, nil
	}
	return wildcard(want)
}

// wildcard matches a text in which * stands for any characters, and \* and \\ for themselves.
func wildcard(want string) (func(string) bool, error) {
	var pieces []string
	var piece strings.Builder
	for i := 0; i < len(want); i++ {
		switch want[i] {
		case '*':
			if piece.Len() == 0 && len(pieces) > 0 {
				return nil, errors.New("wildcard has two * beside each other")
			}
			pieces = append(pieces, piece.String())
			piece.Reset()
		case '\\':
			if i++; i == len(want) || want[i] != '*' && want[i] != '\\' {
				return nil, errors.New(`wildcard has a \ that stands before neither * nor \`)
			}
			piece.WriteByte(want[i])
		default:
			piece.WriteByte(want[i])
		}
	}
	pieces = append(pieces, piece.String())
	return func(text string) bool { return glob(pieces, text) }, nil
}

// glob reports whether a text is the pieces, with anything between them.
func glob(pieces []string, text string) bool {
	first, last := pieces[0], pieces[len(pieces)-1]
	if len(pieces) == 1 {
		return text == first
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, piece := range pieces[1 : len(pieces)-1] {
		_, rest, found := strings.Cut(text, piece)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// anythingBut matches a value that is there and is none of some.
func anythingBut(operand any) (matcher, error) {
	var ways []matcher
	add := func(one matcher, err error) error {
		ways = append(ways, one)
		return err
	}
	switch operand := operand.(type) {
	case map[string]any:
		name, inner, err := only(operand)
		if err != nil {
			return nil, err
		}
		several, is := inner.([]any)
		if !is {
			several = []any{inner}
		}
		for _, one := range several {
			if err := add(texts(name, one)); err != nil {
				return nil, fmt.Errorf("anything-but: %w", err)
			}
		}
	case []any:
		for _, one := range operand {
			if err := add(plain(one)); err != nil {
				return nil, err
			}
		}
	default:
		if err := add(plain(operand)); err != nil {
			return nil, err
		}
	}
	if len(ways) == 0 {
		return nil, errors.New("anything-but has an empty list")
	}
	return func(value any, there bool) bool {
		return there && !slices.ContainsFunc(ways, func(m matcher) bool { return m(value, there) })
	}, nil
}

func plain(want any) (matcher, error) {
	switch want.(type) {
	case string, json.Number:
		return equals(want)
	}
	return nil, errors.New("anything-but must be texts or numbers, or an object with a way to match")
}

// numeric matches numbers in a range, such as [">", 0, "<=", 5].
func numeric(operand any) (matcher, error) {
	list, is := operand.([]any)
	if !is || len(list) != 2 && len(list) != 4 {
		return nil, errors.New(`numeric must be a list such as ["<", 10] or [">", 0, "<=", 5]`)
	}
	type bound struct {
		operator string
		number   *big.Rat
	}
	var bounds []bound
	for i := 0; i < len(list); i += 2 {
		operator, is := list[i].(string)
		number, ok := numberOf(list[i+1])
		if !is || !slices.Contains([]string{"<", "<=", "=", ">", ">="}, operator) || !ok {
			return nil, errors.New("numeric has pairs of <, <=, =, > or >= and a number")
		}
		bounds = append(bounds, bound{operator, number})
	}
	if len(bounds) == 2 && (bounds[0].operator == "=" || bounds[1].operator == "=" || bounds[0].operator[0] == bounds[1].operator[0]) {
		return nil, errors.New("numeric with two bounds has a lower and an upper one")
	}
	return func(value any, _ bool) bool {
		number, ok := numberOf(value)
		return ok && !slices.ContainsFunc(bounds, func(b bound) bool { return !holds(number.Cmp(b.number), b.operator) })
	}, nil
}

func holds(order int, operator string) bool {
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return order == 0
}

// cidr matches addresses of a range.
func cidr(operand any) (matcher, error) {
	text, _ := operand.(string)
	block, err := netip.ParsePrefix(text)
	if err != nil {
		return nil, fmt.Errorf("cidr must be a range of addresses such as 10.0.0.0/24: %.60q", text)
	}
	return func(value any, _ bool) bool {
		text, _ := value.(string)
		address, err := netip.ParseAddr(text)
		return err == nil && block.Masked().Contains(address)
	}, nil
}
