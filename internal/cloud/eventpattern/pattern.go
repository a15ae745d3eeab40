// SPDX-License-Identifier: Apache-2.0

package eventpattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// The bounds of a pattern.
const (
	MaxBytes = 4096 // of text, as EventBridge's
	maxDepth = 32
	maxOr    = 1000 // combinations of $or, as EventBridge's
)

// Pattern is a pattern that Parse read. The zero Pattern matches nothing.
type Pattern struct{ root *fields }

// fields are the fields of an object that must match, all of them, and alternatives of which one must.
type fields struct {
	objects map[string]*fields
	leaves  map[string][]matcher
	or      []*fields
}

// Parse reads a pattern. The error says where it is wrong.
func Parse(text string) (Pattern, error) {
	if len(text) > MaxBytes {
		return Pattern{}, fmt.Errorf("the pattern has %d bytes: there may be %d", len(text), MaxBytes)
	}
	value, err := read([]byte(text))
	if err != nil {
		return Pattern{}, err
	}
	object, is := value.(map[string]any)
	if !is || len(object) == 0 {
		return Pattern{}, errors.New("the pattern must be a JSON object with at least one field")
	}
	count := 1
	root, err := parseObject("$", object, 0, &count)
	if err != nil {
		return Pattern{}, err
	}
	return Pattern{root}, nil
}

// read reads one JSON value, whose objects name no field twice.
func read(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, err := readValue(decoder, 0)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON value")
	}
	return value, nil
}

func readValue(decoder *json.Decoder, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	delim, is := token.(json.Delim)
	if !is {
		return token, nil
	}
	if depth >= maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	if delim == '[' {
		list := []any{}
		for decoder.More() {
			item, err := readValue(decoder, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = decoder.Token()
		return list, err
	}
	object := map[string]any{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		name, _ := key.(string)
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the field %.100q is there twice", name)
		}
		if object[name], err = readValue(decoder, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = decoder.Token()
	return object, err
}

const or = "$or"

func parseObject(path string, object map[string]any, depth int, count *int) (*fields, error) {
	if len(object) == 0 {
		return nil, fmt.Errorf("%s: an empty object matches nothing", path)
	}
	all := &fields{objects: map[string]*fields{}, leaves: map[string][]matcher{}}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		here := path + "." + name
		var err error
		switch value := object[name].(type) {
		case map[string]any:
			all.objects[name], err = parseObject(here, value, depth+1, count)
		case []any:
			if name == or {
				all.or, err = parseOr(here, value, depth, count)
			} else {
				all.leaves[name], err = parseLeaf(here, value)
			}
		default:
			err = fmt.Errorf("%s: it must be a list of values or an object", here)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func parseOr(path string, list []any, depth int, count *int) ([]*fields, error) {
	if len(list) < 2 {
		return nil, fmt.Errorf("%s: it must have at least two alternatives", path)
	}
	if *count *= len(list); *count > maxOr {
		return nil, fmt.Errorf("%s: all $or together have more than %d combinations", path, maxOr)
	}
	var all []*fields
	for i, item := range list {
		object, is := item.(map[string]any)
		if !is {
			return nil, fmt.Errorf("%s[%d]: an alternative is an object", path, i)
		}
		one, err := parseObject(fmt.Sprintf("%s[%d]", path, i), object, depth+1, count)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Match reports whether an event, a JSON object, is one that the pattern chooses. The error is that of an event that is
// not JSON.
func (p Pattern) Match(event []byte) (bool, error) {
	value, err := read(event)
	if err != nil {
		return false, err
	}
	object, is := value.(map[string]any)
	return is && p.root != nil && p.root.match(object), nil
}

func (f *fields) match(object map[string]any) bool {
	for name, inner := range f.objects {
		if !inner.matchValue(object[name]) {
			return false
		}
	}
	for name, ways := range f.leaves {
		value, there := object[name]
		if !slices.ContainsFunc(ways, func(m matcher) bool { return matches(m, value, there) }) {
			return false
		}
	}
	return len(f.or) == 0 || slices.ContainsFunc(f.or, func(one *fields) bool { return one.match(object) })
}

// matchValue matches an object, or one of the objects of a list. A pattern that only asks for what does not exist
// matches where there is no object, either.
func (f *fields) matchValue(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return f.match(value)
	case []any:
		return slices.ContainsFunc(value, f.matchValue)
	}
	return f.match(nil)
}

// matches asks a way about a value, or about each value of a list.
func matches(m matcher, value any, there bool) bool {
	list, is := value.([]any)
	if !is {
		return m(value, there)
	}
	if len(list) == 0 {
		return m(nil, false)
	}
	return slices.ContainsFunc(list, func(item any) bool { return m(item, true) })
}
