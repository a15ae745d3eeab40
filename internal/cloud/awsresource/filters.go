// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/ec2filter"
)

// Filters are the filters that the fields of an answer's struct have by their tags. T is that struct, or a record made
// of it:
//
//	State      string      `filter:"state,vpc-state"` // two names of one value
//	IsDefault  bool        `filter:"is-default"`      // "true" or "false"
//	Role       string      `filter:"role,omitempty"`  // no value if it is empty
//	Attachment *attachment `filter:"attachment."`     // a prefix of the names in the struct, or in the structs of a slice
//
// A field is a string, a boolean, a number, a time, a struct, a pointer to or a slice of them. A nil pointer has no
// value, and a slice has all of its items'. A time is compared in UTC, with milliseconds. Values that the answer does
// not show are in unexported fields, which are not times.
type Filters[T any] struct {
	names  []string
	fields map[string]field
}

// field is how a value is reached, by the index of each field on the way, and whether it is none if it is empty.
type field struct {
	way       []int
	omitEmpty bool
}

// FiltersOf reads the tags of a struct. It panics at start-up if T is no struct, a name is there twice, or a field has
// no values that filters compare.
func FiltersOf[T any]() Filters[T] {
	f := Filters[T]{fields: map[string]field{}}
	f.add(reflect.TypeFor[T](), "", nil)
	slices.Sort(f.names)
	return f
}

func (f *Filters[T]) add(typ reflect.Type, prefix string, way []int) {
	for i := range typ.NumField() {
		of := typ.Field(i)
		tag, ok := of.Tag.Lookup("filter")
		if !ok {
			continue
		}
		to := append(slices.Clone(way), i)
		item := single(of.Type)
		tag, omit := strings.CutSuffix(tag, ",omitempty")
		for name := range strings.SplitSeq(tag, ",") {
			if name == "" || strings.HasSuffix(name, ".") {
				f.add(item, prefix+name, to)
				continue
			}
			if _, again := f.fields[prefix+name]; again || !compared(item) {
				panic(fmt.Sprintf("awsresource: filter %s of %s: two fields have it, or its field is a %s", prefix+name, typ, item))
			}
			f.names, f.fields[prefix+name] = append(f.names, prefix+name), field{to, omit}
		}
	}
}

// single is the type of an item, behind pointers and slices.
func single(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	return typ
}

// timeFormat is how filters compare times, which are in UTC.
const timeFormat = "2006-01-02T15:04:05.000Z"

func compared(typ reflect.Type) bool {
	kind := typ.Kind()
	return typ == reflect.TypeFor[time.Time]() || kind == reflect.String || kind == reflect.Bool || kind >= reflect.Int && kind <= reflect.Int64 || kind == reflect.Float64
}

// Rules are the rules of the filters, and of others that have no field: resources have values for them elsewhere, or
// never.
func (f Filters[T]) Rules(others ...string) ec2filter.Rules {
	return ec2filter.Rules{Names: append(slices.Clone(f.names), others...)}
}

// Values are what an item has under the name of a filter. Found is false for a name that no field has.
func (f Filters[T]) Values(item *T, name string) (values []string, found bool) {
	of, found := f.fields[name]
	if !found {
		return nil, false
	}
	values = gather(reflect.ValueOf(item), of.way, nil)
	if of.omitEmpty {
		values = slices.DeleteFunc(values, func(value string) bool { return value == "" })
	}
	return values, true
}

func gather(value reflect.Value, way []int, to []string) []string {
	switch kind := value.Kind(); {
	case kind == reflect.Pointer:
		if !value.IsNil() {
			to = gather(value.Elem(), way, to)
		}
	case kind == reflect.Slice:
		for i := range value.Len() {
			to = gather(value.Index(i), way, to)
		}
	case len(way) > 0:
		to = gather(value.Field(way[0]), way[1:], to)
	case kind == reflect.Struct:
		to = append(to, value.Interface().(time.Time).UTC().Format(timeFormat))
	case kind == reflect.Bool:
		to = append(to, strconv.FormatBool(value.Bool()))
	case kind == reflect.Float64:
		to = append(to, strconv.FormatFloat(value.Float(), 'f', -1, 64))
	case kind == reflect.String:
		to = append(to, value.String())
	default:
		to = append(to, strconv.FormatInt(value.Int(), 10))
	}
	return to
}
