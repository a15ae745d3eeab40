// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// Value is a Go value that is written as a shape. The zero Value is absent.
type Value struct {
	v     reflect.Value
	whole bool
}

// ValueOf makes a Value of an Object, a struct, or a pointer to one.
func ValueOf(value any) Value {
	v, ok := follow(reflect.ValueOf(value))
	if !ok {
		return Value{}
	}
	return Value{v: v}
}

// Whole is the Value with all fields of its structs, in their own order, as STS and IAM answer: only nil pointers are
// absent.
func (v Value) Whole() Value { return Value{v.v, true} }

// follow goes through pointers and interfaces; false means that it ends in nil.
func follow(v reflect.Value) (reflect.Value, bool) {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		if v.IsNil() {
			return reflect.Value{}, false
		}
		v = v.Elem()
	}
	return v, v.IsValid()
}

// EachMember calls f for each member that has a value, in the order of the table. Of plain fields, those with an empty
// string, a zero time or nil have none; numbers and booleans that may be absent are pointers. See Whole for another
// order.
func (s *Shape) EachMember(value Value, f func(*Member, Value) error) error {
	if !value.v.IsValid() {
		return nil
	}
	switch value.v.Kind() {
	case reflect.Map:
		return s.mapMembers(value, f)
	case reflect.Struct:
	default:
		return fmt.Errorf("%s: a %s is not a structure", s.Name, value.v.Type())
	}
	p := planOf(s, value.v.Type())
	if p.err != nil {
		return p.err
	}
	order := p.table
	if value.whole {
		order = p.own
	}
	for _, i := range order {
		field, err := value.v.FieldByIndexErr(p.fields[i])
		if err != nil {
			continue // in an embedded pointer that is nil
		}
		if !value.whole && absent(field) {
			continue
		}
		inner, ok := follow(field)
		if !ok {
			continue
		}
		if err := f(s.Members[i], Value{inner, value.whole}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Shape) mapMembers(value Value, f func(*Member, Value) error) error {
	v, seen := value.v, 0
	for _, m := range s.Members {
		field := v.MapIndex(reflect.ValueOf(m.Name))
		if !field.IsValid() {
			continue
		}
		seen++
		if inner, ok := follow(field); ok {
			if err := f(m, Value{inner, value.whole}); err != nil {
				return err
			}
		}
	}
	if seen != v.Len() {
		return fmt.Errorf("%s: the object has a member that the table does not have", s.Name)
	}
	return nil
}

// absent reports whether a plain field counts as not set.
func absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return v.Len() == 0
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Struct:
		return v.Type() == timeType && v.IsZero()
	default:
		return false
	}
}

// EachItem calls f for each item of a list.
func (s *Shape) EachItem(value Value, f func(Value) error) error {
	if value.v.Kind() != reflect.Slice {
		return fmt.Errorf("%s: a %s is not a list", s.Name, value.v.Type())
	}
	for i := range value.v.Len() {
		inner, ok := follow(value.v.Index(i))
		if !ok {
			return fmt.Errorf("%s: item %d is nil", s.Name, i)
		}
		if err := f(Value{inner, value.whole}); err != nil {
			return err
		}
	}
	return nil
}

// Entry is an entry of a map that is written in an order of its own: a slice of entries is such a map.
type Entry struct {
	Key   string
	Value int
}

var entriesType = reflect.TypeFor[[]Entry]()

// EachEntry calls f for each entry of a map, sorted by key, or of a slice of entries, as they come.
func (s *Shape) EachEntry(value Value, f func(string, Value) error) error {
	if value.v.Type() == entriesType {
		for _, entry := range value.v.Interface().([]Entry) {
			if err := f(entry.Key, Value{v: reflect.ValueOf(entry.Value)}); err != nil {
				return err
			}
		}
		return nil
	}
	if value.v.Kind() != reflect.Map || value.v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("%s: a %s is not a map", s.Name, value.v.Type())
	}
	entries := map[string]reflect.Value{}
	for iter := value.v.MapRange(); iter.Next(); {
		entries[iter.Key().String()] = iter.Value()
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		inner, ok := follow(entries[key])
		if !ok {
			return fmt.Errorf("%s: the value of %q is nil", s.Name, key)
		}
		if err := f(key, Value{inner, value.whole}); err != nil {
			return err
		}
	}
	return nil
}

// Any is the Go value of a document.
func (v Value) Any() any { return v.v.Interface() }

// Len is the number of items or entries.
func (v Value) Len() int { return v.v.Len() }

// Text writes a scalar as text. Timestamps are in the format, which must not be Usual.
func (s *Shape) Text(value Value, format TimeFormat) (string, error) {
	v := value.v
	if !holds(v.Type(), s) || v.Kind() == reflect.Interface {
		return "", fmt.Errorf("a %s cannot be written as a %s", v.Type(), s.Kind)
	}
	switch s.Kind {
	case String:
		return v.String(), nil
	case Boolean:
		return strconv.FormatBool(v.Bool()), nil
	case Integer, Long:
		if s.Kind == Integer && (v.Int() > math.MaxInt32 || v.Int() < math.MinInt32) {
			return "", fmt.Errorf("%d is too large for an integer of 32 bits", v.Int())
		}
		return strconv.FormatInt(v.Int(), 10), nil
	case Float, Double:
		return FormatFloat(v.Float()), nil
	case Blob:
		return base64.StdEncoding.EncodeToString(v.Bytes()), nil
	case Timestamp:
		return FormatTime(v.Interface().(time.Time), format), nil
	default:
		return "", fmt.Errorf("a %s is not a scalar", s.Kind)
	}
}

// FormatFloat writes a number without an exponent, and the words for those that are none.
func FormatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// FormatTime writes a moment to the millisecond; HTTPDate has whole seconds, and Short leaves zeros of the fraction
// out.
func FormatTime(t time.Time, format TimeFormat) string {
	switch format {
	case Epoch:
		millis := t.UnixMilli()
		if millis%1000 == 0 {
			return strconv.FormatInt(millis/1000, 10)
		}
		return strconv.FormatFloat(float64(millis)/1000, 'f', -1, 64)
	case HTTPDate:
		return t.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	case Short:
		return t.UTC().Format("2006-01-02T15:04:05.999Z")
	default:
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
}
