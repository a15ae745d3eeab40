// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"fmt"
	"time"
)

// Object makes of the output of an action what a client would read: an Object with the members that have a value. The
// output is an Object, a struct that Check accepts, or a pointer to one; nil is an empty object.
func (s *Shape) Object(output any) (Object, error) {
	value, err := s.plain(ValueOf(output))
	if err != nil || value == nil {
		return Object{}, err
	}
	return value.(Object), nil
}

// plain makes a value of the types that an Object has; nil for an absent one.
func (s *Shape) plain(value Value) (any, error) {
	if !value.v.IsValid() {
		return nil, nil //nolint:nilnil // absent
	}
	switch s.Kind {
	case Structure, Union:
		object := Object{}
		return object, s.EachMember(value, func(m *Member, inner Value) error {
			made, err := m.Shape.plain(inner)
			object[m.Name] = made
			return err
		})
	case List:
		items := []any{}
		err := s.EachItem(value, func(inner Value) error {
			made, err := s.Item.plain(inner)
			items = append(items, made)
			return err
		})
		return items, err
	case Map:
		object := Object{}
		return object, s.EachEntry(value, func(key string, inner Value) error {
			made, err := s.Item.plain(inner)
			object[key] = made
			return err
		})
	case Document:
		return value.Any(), nil
	default:
		return s.single(value)
	}
}

// single makes a scalar.
func (s *Shape) single(value Value) (any, error) {
	v := value.v
	if !holds(v.Type(), s) {
		return nil, fmt.Errorf("a %s is not a %s", v.Type(), s.Kind)
	}
	switch s.Kind {
	case String:
		return v.String(), nil
	case Boolean:
		return v.Bool(), nil
	case Integer, Long:
		return v.Int(), nil
	case Float, Double:
		return v.Float(), nil
	case Blob:
		return v.Bytes(), nil
	case Timestamp:
		return v.Interface().(time.Time), nil
	default:
		return nil, fmt.Errorf("a %s is not a scalar", s.Kind)
	}
}
