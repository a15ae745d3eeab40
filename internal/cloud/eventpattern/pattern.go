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

// maxWork is how much all patterns together may compare for one event: a value, or 64 bytes of a text, is one. A pattern with
// a thousand values and an event with a hundred thousand would take minutes otherwise.
const maxWork = 1_000_000

// ErrWork is the error of Match for an event that is too large for the patterns.
var ErrWork = errors.New("the event has too many values to be compared with the patterns")

// Event is an event that ReadEvent read. The zero Event is chosen by no pattern.
type Event struct {
	object map[string]any
	work   *work
}

// work is what may still be compared for an event.
type work struct{ left int }

// spend takes the comparison with a value. It reports whether there was as much left, and takes nothing if there was nothing.
func (w *work) spend(value any) bool {
	if w.left < 0 {
		return false
	}
	text, _ := value.(string)
	w.left -= 1 + len(text)/64
	return w.left >= 0
}

// ReadEvent reads an event, which many patterns may be asked about. The error is that of a text that is not one JSON value,
// or that names a field of an object twice or is nested deeper than 32 levels. A value that is not an object is the zero Event.
func ReadEvent(text []byte) (Event, error) {
	value, err := read(text)
	if err != nil {
		return Event{}, err
	}
	object, _ := value.(map[string]any)
	return Event{object, &work{maxWork}}, nil
}

// Match reports whether an event is one that the pattern chooses. The error is [ErrWork].
func (p Pattern) Match(event Event) (bool, error) {
	if event.object == nil || p.root == nil {
		return false, nil
	}
	matched := p.root.match(event.object, event.work)
	if event.work.left < 0 {
		return false, ErrWork
	}
	return matched, nil
}

func (f *fields) match(object map[string]any, w *work) bool {
	for name, inner := range f.objects {
		if !inner.matchValue(object[name], w) {
			return false
		}
	}
	for name, ways := range f.leaves {
		value, there := object[name]
		if !slices.ContainsFunc(ways, func(m matcher) bool { return matches(m, value, there, w) }) {
			return false
		}
	}
	return len(f.or) == 0 || slices.ContainsFunc(f.or, func(one *fields) bool { return one.match(object, w) })
}

// matchValue matches an object, or one of the objects of a list. A pattern that only asks for what does not exist
// matches where there is no object, either.
func (f *fields) matchValue(value any, w *work) bool {
	if !w.spend(nil) {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		return f.match(value, w)
	case []any:
		for _, item := range value {
			if w.left < 0 {
				return false
			}
			if f.matchValue(item, w) {
				return true
			}
		}
		return false
	}
	return f.match(nil, w)
}

// matches asks a way about a value, or about each value of a list.
func matches(m matcher, value any, there bool, w *work) bool {
	list, is := value.([]any)
	if !is {
		return w.spend(value) && m(value, there)
	}
	if len(list) == 0 {
		return m(nil, false)
	}
	for _, item := range list {
		if !w.spend(item) {
			return false
		}
		if m(item, true) {
			return true
		}
	}
	return false
}
