// SPDX-License-Identifier: Apache-2.0

package logevent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	// maxFields leaves room for the fields of the row itself below VictoriaLogs' limit of 1,000
	// (-insert.maxFieldsPerLine).
	maxFields = 900
	// maxName is VictoriaLogs' limit of the bytes of a name (maxFieldNameSize in lib/logstorage).
	maxName = 128
	// maxDepth is deeper than any name of maxName bytes can be.
	maxDepth = maxName / 2
)

type field struct{ name, value string }

// errFull ends reading: no more fields are kept.
var errFull = errors.New("enough fields")

// flatten returns the scalars of a line that is an object of JSON; nil if it is not one, whole and alone.
func flatten(text []byte) []field {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	f := flattener{decoder: json.NewDecoder(bytes.NewReader(text)), seen: map[string]bool{}}
	f.decoder.UseNumber()
	switch err := f.next("", 0); {
	case errors.Is(err, errFull):
		return f.fields
	case err != nil:
		return nil
	}
	if _, err := f.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return f.fields
}

type flattener struct {
	decoder *json.Decoder
	fields  []field
	seen    map[string]bool
}

// next reads a value that has a name.
func (f *flattener) next(name string, depth int) error {
	token, err := f.decoder.Token()
	if err != nil {
		return fmt.Errorf("reading JSON: %w", err)
	}
	switch value := token.(type) {
	case json.Delim:
		if depth >= maxDepth {
			return f.skip()
		}
		if value == '[' {
			return f.array(name, depth)
		}
		return f.object(name, depth)
	case string:
		return f.add(name, value)
	case json.Number:
		return f.add(name, value.String())
	case bool:
		return f.add(name, strconv.FormatBool(value))
	default:
		return nil // null
	}
}

func (f *flattener) object(name string, depth int) error {
	for f.decoder.More() {
		token, err := f.decoder.Token()
		if err != nil {
			return fmt.Errorf("reading JSON: %w", err)
		}
		key, _ := token.(string) // an object has no other
		if depth == 0 {
			key = topLevel(key)
		} else {
			key = name + "." + key
		}
		if err := f.next(key, depth+1); err != nil {
			return err
		}
	}
	return f.end()
}

func (f *flattener) array(name string, depth int) error {
	for i := 0; f.decoder.More(); i++ {
		if err := f.next(name+"."+strconv.Itoa(i), depth+1); err != nil {
			return err
		}
	}
	return f.end()
}

// end reads the delimiter that ends an object or array.
func (f *flattener) end() error {
	if _, err := f.decoder.Token(); err != nil {
		return fmt.Errorf("reading JSON: %w", err)
	}
	return nil
}

// skip reads to the end of the object or array that has begun.
func (f *flattener) skip() error {
	for open := 1; open > 0; {
		token, err := f.decoder.Token()
		if err != nil {
			return fmt.Errorf("reading JSON: %w", err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
	}
	return nil
}

func (f *flattener) add(name, value string) error {
	if value == "" || len(name) > maxName || f.seen[name] {
		return nil
	}
	if len(f.fields) == maxFields {
		return errFull
	}
	f.seen[name] = true
	f.fields = append(f.fields, field{name, value})
	return nil
}

// topLevel is the name of a field that has a key at the top of an object: never one of the row's own.
func topLevel(key string) string {
	switch {
	case key == "", key[0] == '@', key == Time, key == Message, key == "_stream", key == "_stream_id":
		return "@" + key
	}
	return key
}
