// SPDX-License-Identifier: Apache-2.0

package awssdk

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"muster.dev/muster/internal/aws/awsshape"
)

// filler sets every field of the SDK's structs, each to a value of its own.
type filler struct {
	t      *testing.T
	unions map[reflect.Type]any // the values for interfaces of the SDK
	count  int64
}

var moment = reflect.TypeFor[time.Time]()

// fill sets all that is below a value. Types that hold themselves end at their second level.
func (f *filler) fill(v reflect.Value, within []reflect.Type) {
	f.t.Helper()
	f.count++
	switch {
	case v.Type() == moment:
		v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_250 + f.count*1000).UTC()))
		return
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes(fmt.Appendf(nil, "blob \x00\xff %d", f.count))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), within)
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%d <é&\"'>", f.count))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.count)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.count) + 0.5)
	case reflect.Slice:
		f.slice(v, within)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"key-a", "key b/ü"} {
			item := reflect.New(v.Type().Elem()).Elem()
			f.fill(item, within)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
		}
	case reflect.Struct:
		f.structure(v, append(within, v.Type()))
	case reflect.Interface:
		if example, ok := f.unions[v.Type()]; ok {
			made := reflect.New(reflect.TypeOf(example).Elem())
			f.fill(made.Elem(), within)
			v.Set(made)
			return
		}
		f.t.Fatalf("nothing is known that fills a %s", v.Type())
	default:
		f.t.Fatalf("nothing is known that fills a %s", v.Type())
	}
}

func (f *filler) slice(v reflect.Value, within []reflect.Type) {
	v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	for i := range 2 {
		f.fill(v.Index(i), within)
	}
}

func (f *filler) structure(v reflect.Value, within []reflect.Type) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || field.Name == "ResultMetadata" || holdsItself(field.Type, within) {
			continue
		}
		if field.Name == "EndpointId" && v.Type() == reflect.TypeFor[eventbridge.PutEventsInput]() {
			continue // the client sends to another host then
		}
		f.fill(v.Field(i), within)
	}
}

// holdsItself reports whether a field would lead back to a struct that it is within.
func holdsItself(typ reflect.Type, within []reflect.Type) bool {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	return slices.Contains(within, typ)
}

// tree is the Object that a struct of the SDK stands for. It knows names from the SDK and the table alone, not from a
// codec. A field that the table does not have, and a member that the SDK does not have, fail the test.
func tree(t *testing.T, s *awsshape.Shape, v reflect.Value) any {
	t.Helper()
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch s.Kind {
	case awsshape.String:
		return v.String()
	case awsshape.Boolean:
		return v.Bool()
	case awsshape.Integer, awsshape.Long:
		return v.Int()
	case awsshape.Float, awsshape.Double:
		return v.Float()
	case awsshape.Blob:
		return v.Bytes()
	case awsshape.Timestamp:
		return v.Interface()
	case awsshape.List:
		items := []any{}
		for i := range v.Len() {
			items = append(items, tree(t, s.Item, v.Index(i)))
		}
		return items
	case awsshape.Map:
		object := awsshape.Object{}
		for iter := v.MapRange(); iter.Next(); {
			object[iter.Key().String()] = tree(t, s.Item, iter.Value())
		}
		return object
	case awsshape.Union:
		name := v.Type().Name()
		for _, m := range s.Members {
			if strings.HasSuffix(strings.ToLower(name), "member"+strings.ToLower(m.Name)) {
				return awsshape.Object{m.Name: tree(t, m.Shape, v.FieldByName("Value"))}
			}
		}
		t.Fatalf("union %s has no member for %s", s.Name, name)
	default:
	}
	return treeOfStruct(t, s, v)
}

func treeOfStruct(t *testing.T, s *awsshape.Shape, v reflect.Value) awsshape.Object {
	t.Helper()
	object := awsshape.Object{}
	taken := map[string]bool{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || field.Name == "ResultMetadata" || field.Name == "ErrorCodeOverride" {
			continue
		}
		var member *awsshape.Member
		for _, m := range s.Members { // a member that is called as a method of all errors, ErrorCode, has an underscore in the SDK
			if strings.EqualFold(m.Name, strings.TrimSuffix(field.Name, "_")) {
				member = m
			}
		}
		if member == nil && field.Name == "Message" && v.Field(i).IsNil() {
			continue // the SDK's errors all have one
		}
		if member == nil {
			t.Errorf("%s.%s: the table's %s has no such member", v.Type(), field.Name, s.Name)
			continue
		}
		taken[member.Name] = true
		if k := v.Field(i).Kind(); (k == reflect.Pointer || k == reflect.Slice || k == reflect.Map || k == reflect.Interface) && v.Field(i).IsNil() {
			continue
		}
		object[member.Name] = tree(t, member.Shape, v.Field(i))
	}
	for _, m := range s.Members {
		if !taken[m.Name] && !m.Beyond {
			t.Errorf("member %s of the table's %s is none of %s", m.Name, s.Name, v.Type())
		}
	}
	return object
}
