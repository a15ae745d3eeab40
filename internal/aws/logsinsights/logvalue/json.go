// SPDX-License-Identifier: Apache-2.0

package logvalue

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// FromJSON reads a JSON text into a map, a list or a scalar. The second result is false if the text is not JSON.
func FromJSON(text string) (Value, bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var decoded any
	if decoder.Decode(&decoded) != nil || decoder.More() {
		return Null(), false
	}
	return fromDecoded(decoded), true
}

func fromDecoded(decoded any) Value {
	switch d := decoded.(type) {
	case string:
		return Text(d)
	case json.Number:
		return Spelled(d.String())
	case bool:
		return Bool(d)
	case []any:
		list := make([]Value, len(d))
		for i, element := range d {
			list[i] = fromDecoded(element)
		}
		return List(list)
	case map[string]any:
		fields := make(map[string]Value, len(d))
		for name, member := range d {
			fields[name] = fromDecoded(member)
		}
		return Map(fields)
	default:
		return Null()
	}
}

// JSON returns the value as a JSON text, whose maps are sorted by name.
func (v Value) JSON() string { return string(appendJSON(nil, v)) }

func appendJSON(to []byte, v Value) []byte {
	switch v.kind {
	case KindNumber:
		return append(to, v.String()...)
	case KindBool:
		return append(to, v.Plain()...)
	case KindText, KindTime:
		quoted, err := json.Marshal(v.String())
		if err != nil { // strings marshal
			return to
		}
		return append(to, quoted...)
	case KindList:
		to = append(to, '[')
		for i, element := range v.list {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendJSON(to, element)
		}
		return append(to, ']')
	case KindMap:
		to = append(to, '{')
		for i, name := range slices.Sorted(maps.Keys(v.fields)) {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendJSON(to, Text(name))
			to = append(to, ':')
			to = appendJSON(to, v.fields[name])
		}
		return append(to, '}')
	default:
		return append(to, "null"...)
	}
}
