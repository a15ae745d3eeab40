// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// object is a map of a template with its keys in the order of the text. Values are string, bool, json.Number, []any and
// *object.
type object struct {
	keys   []string
	values map[string]any
}

// put adds a value, or reports a key that is there twice.
func (o *object) put(p *problems, at *path, key string, value any) {
	if _, twice := o.values[key]; twice {
		p.add(at, "the key is there twice")
		return
	}
	o.keys = append(o.keys, key)
	o.values[key] = value
}

// only is the single key of an object with one key, and its value.
func (o *object) only() (key string, value any, ok bool) {
	if len(o.keys) != 1 {
		return "", nil, false
	}
	return o.keys[0], o.values[o.keys[0]], true
}

// invalidValue stands where a problem was reported. All later steps pass it over.
type invalidValue struct{}

// read makes a tree of a body. A body whose first character is { is JSON, all others are YAML, as CloudFormation has it.
func read(body []byte, p *problems) *object {
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(body) > MaxBody:
		p.add(nil, "the template has %d bytes: at most %d", len(body), MaxBody)
		return nil
	case !utf8.Valid(body):
		p.add(nil, "the template is not UTF-8")
		return nil
	case len(trimmed) == 0:
		p.add(nil, "the template is empty")
		return nil
	}
	var root any
	if trimmed[0] == '{' {
		root = readJSON(body, p)
	} else {
		root = readYAML(body, p)
	}
	top, ok := root.(*object)
	if _, bad := root.(invalidValue); !ok && !bad {
		p.add(nil, "a template is a map of sections, such as Resources")
	}
	return top
}

// readJSON reads a body that begins with a brace.
func readJSON(body []byte, p *problems) any {
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			before := body[:min(int(syntax.Offset), len(body))]
			line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')-1
			p.add(nil, "the template is not well-formed JSON (line %d, column %d): %v", line, column, err)
		} else {
			p.add(nil, "the template is not well-formed JSON: %v", err)
		}
		return invalidValue{}
	}
	r := jsonReader{decoder: json.NewDecoder(bytes.NewReader(body)), problems: p}
	r.decoder.UseNumber()
	value, err := r.value(nil, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		p.add(nil, "the template is not well-formed JSON: %v", err)
		return invalidValue{}
	}
	return value
}

// jsonReader reads text that is known to be well-formed.
type jsonReader struct {
	decoder  *json.Decoder
	problems *problems
}

// value reads the next value. The error is the decoder's.
func (r *jsonReader) value(at *path, depth int) (any, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	if depth == MaxDepth {
		r.problems.add(at, "the template has more than %d levels", MaxDepth)
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return r.list(at, depth)
		}
		return r.object(at, depth)
	case nil:
		r.problems.add(at, "null is not a value of templates: leave out the key")
		return invalidValue{}, nil
	default:
		return token, nil
	}
}

func (r *jsonReader) list(at *path, depth int) (any, error) {
	list := []any{}
	for i := 0; r.decoder.More(); i++ {
		value, err := r.value(at.index(i), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := r.decoder.Token()
	return list, err
}

func (r *jsonReader) object(at *path, depth int) (any, error) {
	o := &object{values: map[string]any{}}
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		value, err := r.value(at.key(key), depth+1)
		if err != nil {
			return nil, err
		}
		o.put(r.problems, at.key(key), key, value)
	}
	_, err := r.decoder.Token()
	return o, err
}
