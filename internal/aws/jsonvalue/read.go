// SPDX-License-Identifier: Apache-2.0

package jsonvalue

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

// SerializationException is the code of a body that cannot be read.
const SerializationException = "SerializationException"

// Read decodes a document whose root is a structure. Every error is an *awsfault.Error. An empty document is an empty
// object.
func Read(shape *awsshape.Shape, document []byte, limits awsshape.Limits) (awsshape.Object, error) {
	if !utf8.Valid(document) {
		return nil, awsfault.Errorf(SerializationException, "the body is not UTF-8")
	}
	if len(bytes.TrimSpace(document)) == 0 {
		return awsshape.Object{}, nil
	}
	r := reader{decoder: json.NewDecoder(bytes.NewReader(document)), limits: limits}
	r.decoder.UseNumber()
	token, err := r.decoder.Token()
	if err != nil {
		return nil, r.malformed(err)
	}
	value, err := r.value(shape, token, path{}, awsshape.Usual, 0)
	if err != nil {
		return nil, err
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, awsfault.Errorf(SerializationException, "there is something behind the end of the JSON document")
	}
	object, ok := value.(awsshape.Object)
	if !ok {
		return nil, awsfault.Errorf(SerializationException, "the body is not a JSON object")
	}
	return object, nil
}

type reader struct {
	decoder *json.Decoder
	limits  awsshape.Limits
}

// path is where a value is, and is text only when something is wrong with it.
type path struct {
	parent *path
	name   string
	index  int
}

func (p path) String() string {
	if p.parent == nil {
		return p.name
	}
	name := p.name
	if name == "" {
		name = strconv.Itoa(p.index + 1)
	}
	if above := p.parent.String(); above != "" {
		return above + "." + name
	}
	return name
}

func (r *reader) malformed(err error) error {
	return &awsfault.Error{Code: SerializationException, Message: "the body is not JSON, or it ends early", Cause: err}
}

// value reads the value that begins with the token. A nil value without an error is null.
func (r *reader) value(s *awsshape.Shape, token json.Token, at path, format awsshape.TimeFormat, depth int) (any, error) {
	if depth > r.limits.Depth {
		return nil, awsfault.Errorf(SerializationException, "%.200s: more than %d levels of values in values", at, r.limits.Depth)
	}
	if token == nil {
		return nil, nil //nolint:nilnil // null
	}
	wrong := func() error {
		return awsfault.Errorf(SerializationException, "%.200s: %s cannot be converted to a %s", at, described(token), s.Kind)
	}
	delim, _ := token.(json.Delim)
	switch s.Kind {
	case awsshape.Structure, awsshape.Union:
		if delim != '{' {
			return nil, wrong()
		}
		return r.structure(s, at, depth)
	case awsshape.Map:
		if delim != '{' {
			return nil, wrong()
		}
		return r.entries(s, at, depth)
	case awsshape.List:
		if delim != '[' {
			return nil, wrong()
		}
		return r.list(s, at, depth)
	case awsshape.Document:
		return r.document(token, at, depth)
	default:
	}
	if delim != 0 {
		return nil, wrong()
	}
	value, err := r.scalar(s, token, format)
	if errors.Is(err, errType) {
		return nil, wrong()
	} else if err != nil {
		return nil, awsfault.Errorf(SerializationException, "%.200s: %v", at, err)
	}
	return value, nil
}

func (r *reader) structure(s *awsshape.Shape, at path, depth int) (any, error) {
	object := awsshape.Object{}
	seen := map[string]bool{}
	for r.decoder.More() {
		name, token, err := r.pair(at, seen)
		if err != nil {
			return nil, err
		}
		member := s.MemberIn(name)
		if member == nil {
			if err := r.skip(token, depth); err != nil {
				return nil, err
			}
			continue
		}
		value, err := r.value(member.Shape, token, path{parent: &at, name: member.Name}, member.Time, depth+1)
		if err != nil {
			return nil, err
		}
		if value != nil {
			object[member.Name] = value
		}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if s.Kind == awsshape.Union && len(object) != 1 {
		return nil, awsfault.Errorf(SerializationException, "%.200s: exactly one member may be set, not %d", at, len(object))
	}
	return object, nil
}

func (r *reader) entries(s *awsshape.Shape, at path, depth int) (any, error) {
	object := awsshape.Object{}
	seen := map[string]bool{}
	for r.decoder.More() {
		name, token, err := r.pair(at, seen)
		if err != nil {
			return nil, err
		}
		if len(seen) > r.limits.Items {
			return nil, awsfault.Errorf(SerializationException, "%.200s: more than %d entries", at, r.limits.Items)
		}
		value, err := r.value(s.Item, token, path{parent: &at, name: name}, awsshape.Usual, depth+1)
		if err != nil {
			return nil, err
		}
		if value == nil {
			return nil, awsfault.Errorf(SerializationException, "%.200s: the value of %.100q is null", at, name)
		}
		object[name] = value
	}
	return object, r.end()
}

func (r *reader) list(s *awsshape.Shape, at path, depth int) (any, error) {
	items := []any{}
	for r.decoder.More() {
		if len(items) == r.limits.Items {
			return nil, awsfault.Errorf(SerializationException, "%.200s: more than %d items", at, r.limits.Items)
		}
		token, err := r.decoder.Token()
		if err != nil {
			return nil, r.malformed(err)
		}
		value, err := r.value(s.Item, token, path{parent: &at, index: len(items)}, awsshape.Usual, depth+1)
		if err != nil {
			return nil, err
		}
		if value == nil {
			return nil, awsfault.Errorf(SerializationException, "%.200s: item %d is null", at, len(items)+1)
		}
		items = append(items, value)
	}
	return items, r.end()
}

// pair reads a name, and the first token of what it names.
func (r *reader) pair(at path, seen map[string]bool) (string, json.Token, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return "", nil, r.malformed(err)
	}
	name, _ := token.(string)
	if seen[name] {
		return "", nil, awsfault.Errorf(SerializationException, "%.200s: the name %.100q comes twice", at, name)
	}
	seen[name] = true
	token, err = r.decoder.Token()
	if err != nil {
		return "", nil, r.malformed(err)
	}
	return name, token, nil
}

// end reads the closing bracket.
func (r *reader) end() error {
	if _, err := r.decoder.Token(); err != nil {
		return r.malformed(err)
	}
	return nil
}

// skip reads over a value that nobody knows.
func (r *reader) skip(token json.Token, depth int) error {
	_, err := r.document(token, path{name: "a member that the API does not have"}, depth)
	return err
}

func (r *reader) document(token json.Token, at path, depth int) (any, error) {
	if depth > r.limits.Depth {
		return nil, awsfault.Errorf(SerializationException, "%.200s: more than %d levels of values in values", at, r.limits.Depth)
	}
	switch token {
	case json.Delim('{'):
		object, seen := map[string]any{}, map[string]bool{}
		for r.decoder.More() {
			name, inner, err := r.pair(at, seen)
			if err != nil {
				return nil, err
			}
			if object[name], err = r.document(inner, at, depth+1); err != nil {
				return nil, err
			}
		}
		return object, r.end()
	case json.Delim('['):
		items := []any{}
		for r.decoder.More() {
			inner, err := r.decoder.Token()
			if err != nil {
				return nil, r.malformed(err)
			}
			item, err := r.document(inner, at, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, r.end()
	}
	return token, nil
}

// errType is the error of a JSON value that is of another type.
var errType = errors.New("another type")

func (r *reader) scalar(s *awsshape.Shape, token json.Token, format awsshape.TimeFormat) (any, error) {
	text, isString := token.(string)
	number, isNumber := token.(json.Number)
	if len(text) > r.limits.Value {
		return nil, fmt.Errorf("the string has more than %d bytes", r.limits.Value)
	}
	switch s.Kind {
	case awsshape.String:
		if isString {
			return text, nil
		}
	case awsshape.Blob:
		if !isString {
			break
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("the string is not base64")
		}
		return raw, nil
	case awsshape.Boolean:
		if b, ok := token.(bool); ok {
			return b, nil
		}
	case awsshape.Integer, awsshape.Long:
		if isNumber {
			return s.Scalar(string(number), format)
		}
	case awsshape.Float, awsshape.Double:
		if isNumber || isString && slices.Contains([]string{"NaN", "Infinity", "-Infinity"}, text) {
			return awsshape.ParseFloat(string(number) + text)
		}
	case awsshape.Timestamp:
		switch {
		case isNumber && (format == awsshape.Usual || format == awsshape.Epoch):
			return awsshape.ParseTime(string(number), awsshape.Epoch)
		case isString && format != awsshape.Usual && format != awsshape.Epoch:
			return awsshape.ParseTime(text, format)
		}
	default:
	}
	return nil, errType
}

// described names the type of a JSON value as AWS's messages do.
func described(token json.Token) string {
	switch token := token.(type) {
	case string:
		return "STRING_VALUE"
	case json.Number:
		return "NUMBER_VALUE"
	case bool:
		return strings.ToUpper(strconv.FormatBool(token)) + "_VALUE"
	case json.Delim:
		if token == '{' {
			return "START_OBJECT"
		}
		return "START_ARRAY"
	}
	return "VALUE_NULL"
}
