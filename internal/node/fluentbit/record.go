// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	// maxDepth bounds how deep a line of JSON is nested, and mostKeys how many keys an object has: a larger one stays text.
	maxDepth = 32
	mostKeys = 1000
)

// Map is an object whose keys have an order. Values are string, bool, json.Number, nil, Map and []any.
type Map []Pair

// Pair is a key and its value.
type Pair struct {
	Key   string
	Value any
}

// Event is a record with its tag and time.
type Event struct {
	Tag    string
	Time   time.Time
	Record Map
}

func (m Map) index(key string) int {
	return slices.IndexFunc(m, func(p Pair) bool { return p.Key == key })
}

// Get finds the value of a key.
func (m Map) Get(key string) (any, bool) {
	if at := m.index(key); at >= 0 {
		return m[at].Value, true
	}
	return nil, false
}

// with is the map with a value in place of that of a key, or at the end.
func (m Map) with(key string, value any) Map {
	m = slices.Clone(m)
	if at := m.index(key); at >= 0 {
		m[at].Value = value
		return m
	}
	return append(m, Pair{key, value})
}

// without is the map without some pairs.
func (m Map) without(leave func(Pair) bool) Map {
	return slices.DeleteFunc(slices.Clone(m), leave)
}

// MarshalJSON implements [json.Marshaler]: keys stay in their order.
func (m Map) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	_ = out.WriteByte('{') // a buffer takes everything
	for i, p := range m {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		for j, part := range []any{p.Key, p.Value} {
			if j > 0 {
				_ = out.WriteByte(':')
			}
			text, err := plain(part)
			if err != nil {
				return nil, err
			}
			_, _ = out.Write(text)
		}
	}
	_ = out.WriteByte('}')
	return out.Bytes(), nil
}

// plain is JSON that leaves <, > and & as they are.
func plain(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// textOf is a value as text: a string is itself, and all else is JSON.
func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := plain(value)
	if err != nil {
		return ""
	}
	return string(text)
}

var errLarge = errors.New("it is nested too deep, or has too many keys")

// readObject reads an object of JSON, and nothing after it.
func readObject(text string) (Map, bool) {
	if trimmed := strings.TrimSpace(text); !strings.HasPrefix(trimmed, "{") || !strings.HasSuffix(trimmed, "}") {
		return nil, false
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	value, err := readValue(decoder, 0)
	if err != nil {
		return nil, false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	object, ok := value.(Map)
	return object, ok
}

func readValue(decoder *json.Decoder, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errLarge
	}
	switch token {
	case json.Delim('{'):
		return readMap(decoder, depth)
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			value, err := readValue(decoder, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = decoder.Token()
		return list, err
	}
	return token, nil
}

// readMap reads the rest of an object. Of a key that is there twice the last value counts.
func readMap(decoder *json.Decoder, depth int) (Map, error) {
	object := Map{}
	seen := map[string]int{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := readValue(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if at, ok := seen[name]; ok {
			object[at].Value = value
			continue
		}
		if len(object) == mostKeys {
			return nil, errLarge
		}
		seen[name] = len(object)
		object = append(object, Pair{name, value})
	}
	_, err := decoder.Token()
	return object, err
}
