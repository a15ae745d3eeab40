// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// Object is a decoded structure or map. Its values are string, bool, int64, float64, []byte, time.Time, []any, Object,
// and for a document what encoding/json makes of it.
type Object map[string]any

// Missing are the paths of required members that are not there.
func (s *Shape) Missing(object Object) []string {
	var missing []string
	s.missing("", object, &missing)
	return missing
}

func (s *Shape) missing(prefix string, value any, missing *[]string) {
	switch s.Kind {
	case Structure, Union:
		object, _ := value.(Object)
		for _, m := range s.Members {
			inner, ok := object[m.Name]
			switch {
			case ok:
				m.Shape.missing(prefix+m.Name+".", inner, missing)
			case m.Required:
				*missing = append(*missing, prefix+m.Name)
			}
		}
	case List:
		items, _ := value.([]any)
		for i, item := range items {
			s.Item.missing(fmt.Sprintf("%s%d.", prefix, i+1), item, missing)
		}
	case Map:
		object, _ := value.(Object)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			s.Item.missing(prefix+key+".", object[key], missing)
		}
	default:
	}
}

// Into copies an object into the struct that target points to. A field takes the member of its own name, in whatever
// case: Arn and ARN both take arn. Fields are pointers where "absent" and "zero" differ; embedded structs count as if
// their fields stood there.
//
// It returns the paths of members that are in the object and that no field takes, sorted by the table: what is in the
// request and would be ignored. An error means that the struct does not fit the table, which Check finds in a test.
func (s *Shape) Into(object Object, target any) (unused []string, err error) {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s: the target is a %T: want a pointer to a struct", s.Name, target)
	}
	c := copier{}
	err = c.structure("", s, object, v.Elem())
	return c.unused, err
}

type copier struct{ unused []string }

func (c *copier) structure(prefix string, s *Shape, object Object, target reflect.Value) error {
	p := planOf(s, target.Type())
	if p.err != nil {
		return p.err
	}
	for i, m := range s.Members {
		value, ok := object[m.Name]
		if !ok {
			continue
		}
		if p.fields[i] == nil {
			c.unused = append(c.unused, prefix+m.Name)
			continue
		}
		if err := c.value(prefix+m.Name, m.Shape, value, target.FieldByIndex(p.fields[i])); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) value(path string, s *Shape, value any, target reflect.Value) error {
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
		return c.value(path, s, value, target.Elem())
	}
	if target.Kind() == reflect.Interface {
		target.Set(reflect.ValueOf(value))
		return nil
	}
	switch s.Kind {
	case String:
		target.SetString(value.(string))
	case Boolean:
		target.SetBool(value.(bool))
	case Integer, Long:
		target.SetInt(value.(int64))
	case Float, Double:
		target.SetFloat(value.(float64))
	case Blob:
		target.SetBytes(value.([]byte))
	case Timestamp:
		target.Set(reflect.ValueOf(value.(time.Time)))
	case List:
		items := value.([]any)
		slice := reflect.MakeSlice(target.Type(), len(items), len(items))
		for i, item := range items {
			if err := c.value(fmt.Sprintf("%s.%d", path, i+1), s.Item, item, slice.Index(i)); err != nil {
				return err
			}
		}
		target.Set(slice)
	case Map:
		object := value.(Object)
		made := reflect.MakeMapWithSize(target.Type(), len(object))
		for key, item := range object {
			copied := reflect.New(target.Type().Elem()).Elem()
			if err := c.value(path+"."+key, s.Item, item, copied); err != nil {
				return err
			}
			made.SetMapIndex(reflect.ValueOf(key).Convert(target.Type().Key()), copied)
		}
		target.Set(made)
	case Structure, Union:
		if target.Type() == objectType {
			target.Set(reflect.ValueOf(value))
			return nil
		}
		return c.structure(path+".", s, value.(Object), target)
	default:
		return fmt.Errorf("%s: a %s needs a field of type any", path, s.Kind)
	}
	return nil
}

// plan says which field of a struct each member of a shape is.
type plan struct {
	fields [][]int // by the member's place; nil without a field
	// table and own are the places of members that have a field: in the order of the table, and in that of the fields.
	table, own []int
	err        error
}

type planKey struct {
	shape *Shape
	typ   reflect.Type
}

var plans sync.Map // planKey → *plan

var (
	timeType   = reflect.TypeFor[time.Time]()
	objectType = reflect.TypeFor[Object]()
)

func planOf(s *Shape, typ reflect.Type) *plan {
	if known, ok := plans.Load(planKey{s, typ}); ok {
		return known.(*plan)
	}
	p := &plan{fields: make([][]int, len(s.Members))}
	for _, field := range reflect.VisibleFields(typ) {
		if field.Anonymous || !field.IsExported() {
			continue
		}
		if p.err = p.place(s, typ, field); p.err != nil {
			break
		}
	}
	p.table = slices.Sorted(slices.Values(p.own))
	plans.Store(planKey{s, typ}, p)
	return p
}

func (p *plan) place(s *Shape, typ reflect.Type, field reflect.StructField) error {
	for i, m := range s.Members {
		if !strings.EqualFold(m.Name, field.Name) {
			continue
		}
		if p.fields[i] != nil {
			return fmt.Errorf("%s: two fields are member %s of %s", typ, m.Name, s.Name)
		}
		if !holds(field.Type, m.Shape) {
			return fmt.Errorf("%s.%s is a %s: member %s of %s is a %s", typ, field.Name, field.Type, m.Name, s.Name, m.Shape.Kind)
		}
		p.fields[i], p.own = field.Index, append(p.own, i)
		return nil
	}
	return fmt.Errorf("%s.%s: %s has no member of that name", typ, field.Name, s.Name)
}

// holds reports whether a Go type holds all values of a shape's kind.
func holds(typ reflect.Type, s *Shape) bool {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Kind() == reflect.Interface {
		return typ.NumMethod() == 0
	}
	switch s.Kind {
	case String:
		return typ.Kind() == reflect.String
	case Boolean:
		return typ.Kind() == reflect.Bool
	case Integer:
		return typ.Kind() == reflect.Int32 || typ.Kind() == reflect.Int64 || typ.Kind() == reflect.Int
	case Long:
		return typ.Kind() == reflect.Int64
	case Float, Double:
		return typ.Kind() == reflect.Float64 || typ.Kind() == reflect.Float32 && s.Kind == Float
	case Blob:
		return typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Uint8
	case Timestamp:
		return typ == timeType
	case List:
		return typ.Kind() == reflect.Slice && holds(typ.Elem(), s.Item)
	case Map:
		return holdsMap(typ, s.Item)
	case Structure, Union:
		return typ.Kind() == reflect.Struct && typ != timeType || typ == objectType
	default:
		return false
	}
}

func holdsMap(typ reflect.Type, item *Shape) bool {
	if typ == entriesType {
		return item.Kind == Integer
	}
	return typ.Kind() == reflect.Map && typ.Key().Kind() == reflect.String && holds(typ.Elem(), item)
}

// Check compares a struct with a shape, in depth: each field must be a member that it can hold. It is for tests.
func (s *Shape) Check(typ reflect.Type) error {
	return check(s, typ, map[planKey]bool{})
}

func check(s *Shape, typ reflect.Type, seen map[planKey]bool) error {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Kind() == reflect.Interface || typ == objectType || seen[planKey{s, typ}] {
		return nil
	}
	seen[planKey{s, typ}] = true
	switch s.Kind {
	case List, Map:
		return check(s.Item, typ.Elem(), seen)
	case Structure, Union:
	default:
		return nil
	}
	p := planOf(s, typ)
	if p.err != nil {
		return p.err
	}
	for i, m := range s.Members {
		if p.fields[i] == nil {
			continue
		}
		if err := check(m.Shape, typ.FieldByIndex(p.fields[i]).Type, seen); err != nil {
			return err
		}
	}
	return nil
}
