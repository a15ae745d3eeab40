// SPDX-License-Identifier: Apache-2.0

package strictyaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// mistyped finds every value of a document that its type cannot have, and takes it out, so that the rest can be read.
// encoding/json tells of the first one only. False means that the value itself is one.
func mistyped(value any, t reflect.Type, path string) (wrong []Wrong, ok bool) {
	for t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	switch {
	case value == nil, t.Kind() == reflect.Interface:
		return nil, true
	case decodesItself(t):
		return leaf(value, t, path)
	case t.Kind() == reflect.Struct:
		object, ok := value.(map[string]any)
		if !ok {
			return []Wrong{notA("an object with fields", value, path)}, false
		}
		fields := map[string]reflect.Type{}
		fieldsOf(t, fields)
		return inObject(object, path, func(key string) reflect.Type { return fields[key] }), true
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		object, ok := value.(map[string]any)
		if !ok {
			return []Wrong{notA("an object with fields", value, path)}, false
		}
		return inObject(object, path, func(string) reflect.Type { return t.Elem() }), true
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		list, ok := value.([]any)
		if !ok {
			return []Wrong{notA("a list", value, path)}, false
		}
		for i := range list {
			more, ok := mistyped(list[i], t.Elem(), fmt.Sprintf("%s[%d]", path, i))
			if wrong = append(wrong, more...); !ok {
				list[i] = nil
			}
		}
		return wrong, true
	default:
		return leaf(value, t, path)
	}
}

func inObject(object map[string]any, path string, typeOf func(key string) reflect.Type) (wrong []Wrong) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		t := typeOf(key)
		if t == nil {
			continue // an unknown field, which the decoder tells of
		}
		more, ok := mistyped(object[key], t, strings.TrimPrefix(path+"."+key, "."))
		if wrong = append(wrong, more...); !ok {
			delete(object, key)
		}
	}
	return wrong
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func decodesItself(t reflect.Type) bool {
	return t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler)
}

// fieldsOf finds the types of a struct's fields by their names in JSON.
func fieldsOf(t reflect.Type, into map[string]reflect.Type) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" && options == "", slices.Contains(strings.Split(options, ","), "string"):
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			fieldsOf(inner, into)
		case !f.IsExported():
		case name == "":
			into[f.Name] = f.Type
		default:
			into[name] = f.Type
		}
	}
}

// leaf has one value decoded.
func leaf(value any, t reflect.Type, path string) (wrong []Wrong, ok bool) {
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err == nil {
		return nil, true
	}
	shown := path
	if shown == "" {
		shown = whole
	}
	text := fmt.Sprintf("%s: %v", shown, err)
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = fmt.Sprintf("%s: Invalid value: %s: must be %s", shown, typed.Value, inWords(typed.Type))
	}
	return []Wrong{{Path: path, Text: text, spoils: true}}, false
}

// whole stands for the path of the document itself.
const whole = "<document>"

func notA(want string, value any, path string) Wrong {
	is := "number"
	switch value.(type) {
	case map[string]any:
		is = "object"
	case []any:
		is = "array"
	case string:
		is = "string"
	case bool:
		is = "bool"
	}
	shown := path
	if shown == "" {
		shown = whole
	}
	return Wrong{Path: path, Text: fmt.Sprintf("%s: Invalid value: %s: must be %s", shown, is, want), spoils: true}
}

// inWords says in YAML's words what Go calls a type.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text, in quotes if it looks like something else"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object with fields"
	default:
		return t.Kind().String()
	}
}
